// Uses the client that openapi-typescript generates: types come from the document alone.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { paths } from "./generated/windlass.js";

const server = process.env.WINDLASS_SERVER;
assert(server, "WINDLASS_SERVER is the server's address");
const client = createClient<paths>({ baseUrl: server });

const stored = await client.POST("/api/v1/jobs", {
  body: { kind: "email", queue: "generated", payload: ["any", { json: true }, 1.5], retry: { policy: "stepped", maxRetries: 5 } },
});
assert.equal(stored.response.status, 201);
assert(stored.data);
assert("state" in stored.data, "a job, not a schedule");
assert.equal(stored.data.state, "queued");
assert("retry" in stored.data, "without Prefer the answer is the whole job");
assert.equal(stored.data.retry.maxRetries, 5);

const taken = await client.POST("/api/v1/leases", { body: { worker: "w1", queues: ["generated"], max: 1 } });
const job = taken.data?.jobs[0];
assert(job && job.id === stored.data.id);
assert.deepEqual(job.payload, ["any", { json: true }, 1.5]);
const done = await client.POST("/api/v1/leases/complete", {
  body: { worker: "w1", results: [{ id: job.id, attempt: job.attempt, lease: job.lease, result: "sent" }] },
});
assert.equal(done.data?.results[0]?.result, "ok");

const shown = await client.GET("/api/v1/jobs/{id}", { params: { path: { id: job.id } } });
assert(shown.data && "state" in shown.data, "a job, not a schedule");
assert.equal(shown.data.state, "succeeded");
assert.equal(shown.data.result, "sent");

const missing = await client.GET("/api/v1/jobs/{id}", { params: { path: { id: 999_999 } } });
assert.equal(missing.error?.status, 404);
console.log("TypeScript: enqueued, ran and read a job with the generated client");
