-- jobs_newest: a page of live and archived jobs by id. Each side is read by its own id index, no further than the page.
SELECT {listed}
FROM (
    (SELECT {live}
     FROM {schema}.jobs j JOIN {schema}.queues q ON q.id = j.queue_id
     WHERE ($1::bigint IS NULL OR j.id < $1::bigint) AND $3::boolean
       AND ($4::text[] IS NULL OR j.state = ANY ($4::text[]))
       AND ($5::text IS NULL OR q.name = $5::text) AND ($6::text[] IS NULL OR q.tenant = ALL ($6::text[]))
       AND ($7::text IS NULL OR j.kind = $7::text) AND ($8::text IS NULL OR j.error_class = $8::text)
       AND ($9::bigint IS NULL OR j.created_at >= $9::bigint) AND ($10::bigint IS NULL OR j.schedule_id = $10::bigint)
       AND ($11::bigint IS NULL OR j.parent_id = $11::bigint) AND ($12::text IS NULL OR q.executor = $12::text)
     ORDER BY j.id DESC LIMIT $2::bigint)
    UNION ALL
    (SELECT {archived}
     FROM {schema}.archive j JOIN {schema}.queues q ON q.id = j.queue_id
     WHERE ($1::bigint IS NULL OR j.id < $1::bigint)
       AND ($4::text[] IS NULL OR j.state = ANY ($4::text[]))
       AND ($5::text IS NULL OR q.name = $5::text) AND ($6::text[] IS NULL OR q.tenant = ALL ($6::text[]))
       AND ($7::text IS NULL OR j.kind = $7::text) AND ($8::text IS NULL OR j.error_class = $8::text)
       AND ($9::bigint IS NULL OR j.finished_at >= $9::bigint) AND ($10::bigint IS NULL OR j.schedule_id = $10::bigint)
       AND ($11::bigint IS NULL OR j.parent_id = $11::bigint) AND ($12::text IS NULL OR q.executor = $12::text)
       AND (NOT $13::boolean OR (j.state = 'failed' AND j.discarded_at IS NULL))
       AND ($14::text IS NULL OR j.fingerprint = $14::text)
     ORDER BY j.id DESC LIMIT $2::bigint)
) j
ORDER BY j.id DESC
LIMIT $2::bigint
