"""Checks of scripts/attack for answers that schemathesis judges by their status alone."""

import schemathesis

BATCH = "POST /api/v1/jobs/batch"


@schemathesis.check
def a_batch_refuses_its_wrong_jobs(ctx, response, case) -> None:
    """With `atomic: false` each job is stored or refused by itself, so a batch with wrong jobs is answered with 200 and a
    result for each job. The tool takes 200 for accepted; schemathesis.toml allows it, and this check looks inside."""
    is_wrong = case.meta is not None and case.meta.generation.mode.is_negative
    if case.operation.label != BATCH or response.status_code != 200 or not is_wrong:
        return
    results = [item["result"] for item in response.json()["results"]]
    assert "refused" in results or "conflict" in results, f"a batch with a wrong job was stored: {results}"
