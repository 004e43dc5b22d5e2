"""Uses the client that openapi-python-client generates: types come from the document alone."""

import os

import httpx
from windlass_client import Client
from windlass_client.api.jobs import enqueue_job, get_job
from windlass_client.api.remote_workers import complete_leases, take_leases
from windlass_client.models import (
    Job,
    JobWithDeliveries,
    LeaseCompletion,
    LeaseRequest,
    NewJob,
    PolicyFields,
    Problem,
    SucceededAttempt,
)
from windlass_client.models.answers import Answers
from windlass_client.models.leased_jobs import LeasedJobs

PAYLOAD: list[object] = ["any", {"json": True}, 1.5]

# A busy machine may take longer than the five seconds that are the default.
with Client(base_url=os.environ["WINDLASS_SERVER"], timeout=httpx.Timeout(120)) as client:
    retry = PolicyFields(policy="stepped", max_retries=5)
    stored = enqueue_job.sync(client=client, body=NewJob(kind="email", queue="generated-python", payload=PAYLOAD, retry=retry))
    assert isinstance(stored, Job), stored
    assert stored.state == "queued" and stored.retry.max_retries == 5, stored

    taken = take_leases.sync(client=client, body=LeaseRequest(worker="w1", queues=["generated-python"], max_=1))
    assert isinstance(taken, LeasedJobs), taken
    [job] = taken.jobs
    assert job.id == stored.id and job.payload == PAYLOAD, job
    success = SucceededAttempt(id=job.id, attempt=job.attempt, lease=job.lease, result={"sent": True})
    done = complete_leases.sync(client=client, body=LeaseCompletion(worker="w1", results=[success]))
    assert isinstance(done, Answers) and done.results[0].result == "ok", done

    shown = get_job.sync(client=client, id=job.id)
    assert isinstance(shown, JobWithDeliveries) and shown.state == "succeeded", shown
    assert shown.result == {"sent": True}, shown

    missing = get_job.sync(client=client, id=999_999)
    assert isinstance(missing, Problem) and missing.status == 404, missing
print("Python: enqueued, ran and read a job with the generated client")
