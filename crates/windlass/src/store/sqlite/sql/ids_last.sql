SELECT last FROM windlass_sequence WHERE only = 1
