-- notify: tell the fleet that work may have become due.
SELECT pg_notify('{channel}', '')
