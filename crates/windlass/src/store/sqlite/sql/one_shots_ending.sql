-- one_shots_ending: one-shot schedules that go when their run has ended.
SELECT id FROM windlass_schedules INDEXED BY windlass_schedules_ending WHERE recurrence = 'one_shot' AND next_at IS NULL
