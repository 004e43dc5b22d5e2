-- depths: how full each queue is.
SELECT q.id, coalesce(l.due, 0), coalesce(l.later, 0), coalesce(l.running, 0), coalesce(d.dead, 0), l.oldest_due
FROM {schema}.queues q
LEFT JOIN (
    SELECT j.queue_id,
           count(*) FILTER (WHERE j.state <> 'running' AND j.due_at <= clock.now) AS due,
           count(*) FILTER (WHERE j.state <> 'running' AND j.due_at > clock.now) AS later,
           count(*) FILTER (WHERE j.state = 'running') AS running,
           min(j.due_at) FILTER (WHERE j.state <> 'running' AND j.due_at <= clock.now) AS oldest_due
    FROM (SELECT {now} AS now) clock, {schema}.jobs j
    GROUP BY j.queue_id
) l ON l.queue_id = q.id
LEFT JOIN (
    SELECT a.queue_id, count(*) AS dead
    FROM {schema}.archive a
    WHERE a.class = 'failed' AND a.state = 'failed' AND a.discarded_at IS NULL
    GROUP BY a.queue_id
) d ON d.queue_id = q.id
WHERE $2::text IS NULL OR q.tenant = $2::text
ORDER BY q.id
