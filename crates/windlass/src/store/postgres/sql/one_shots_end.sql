-- one_shots_end: schedules that fire once go when their run has ended.
DELETE FROM {schema}.schedules s
WHERE s.id = ANY ($1::bigint[]) AND s.one_shot AND s.next_at IS NULL
