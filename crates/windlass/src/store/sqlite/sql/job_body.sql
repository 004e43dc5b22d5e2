-- job_body: what a repeated key is compared with.
SELECT kind, payload FROM windlass_live_jobs WHERE id = ?1
UNION ALL
SELECT kind, payload FROM windlass_archive WHERE id = ?1
