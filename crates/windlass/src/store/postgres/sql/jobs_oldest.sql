-- jobs_oldest: a page of live and archived jobs by id. Each side is read by its own id index, no further than the page. Queues
-- come as numbers: of names the planner cannot tell how many jobs they have, and reads and sorts them all to find a page.
SELECT {listed}
FROM (
    (SELECT {live}
     FROM {schema}.jobs j
     WHERE ($1::bigint IS NULL OR j.id > $1::bigint) AND $3::boolean
       AND ($4::text[] IS NULL OR j.state = ANY ($4::text[]))
       AND ($5::bigint[] IS NULL OR j.queue_id = ANY ($5::bigint[]))
       AND ($6::text IS NULL OR j.kind = $6::text) AND ($7::text IS NULL OR j.error_class = $7::text)
       AND ($8::bigint IS NULL OR j.created_at >= $8::bigint) AND ($9::bigint IS NULL OR j.schedule_id = $9::bigint)
       AND ($10::bigint IS NULL OR j.parent_id = $10::bigint)
     ORDER BY j.id ASC LIMIT $2::bigint)
    UNION ALL
    (SELECT {archived}
     FROM {schema}.archive j
     WHERE ($1::bigint IS NULL OR j.id > $1::bigint)
       AND ($4::text[] IS NULL OR j.state = ANY ($4::text[]))
       AND ($5::bigint[] IS NULL OR j.queue_id = ANY ($5::bigint[]))
       AND ($6::text IS NULL OR j.kind = $6::text) AND ($7::text IS NULL OR j.error_class = $7::text)
       AND ($8::bigint IS NULL OR j.finished_at >= $8::bigint) AND ($9::bigint IS NULL OR j.schedule_id = $9::bigint)
       AND ($10::bigint IS NULL OR j.parent_id = $10::bigint)
       AND (NOT $11::boolean OR (j.state = 'failed' AND j.discarded_at IS NULL))
       AND ($12::text IS NULL OR j.fingerprint = $12::text)
     ORDER BY j.id ASC LIMIT $2::bigint)
) j
ORDER BY j.id ASC
LIMIT $2::bigint
