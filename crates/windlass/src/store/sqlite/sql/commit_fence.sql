-- commit_fence: whether the attempt still holds.
SELECT 1 FROM windlass_jobs WHERE id = ?1 AND attempt = ?2 AND lease_id = ?3 AND state = 'running'
