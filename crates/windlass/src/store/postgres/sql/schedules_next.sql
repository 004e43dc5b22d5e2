-- schedules_next: when the next one will be due.
SELECT min(next_at) FROM {schema}.schedules WHERE NOT paused AND next_at > {now}
