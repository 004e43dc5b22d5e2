// A client and a worker on whatever runtime runs this: jobs that succeed, retry and fail. Needs WINDLASS_SERVER and `npm run build`.
import { Client, JobNotSucceeded, Permanent, RetryAfter, Worker } from "./dist/src/index.js";

const queue = `smoke-${process.argv[2]}`;
const client = new Client();
const worker = new Worker({ queues: [queue], concurrency: 4 });
worker.handle("add", (job, ctx) => {
  if (ctx.attempt === 1) throw new RetryAfter("10ms", "not yet");
  return job.payload.a + job.payload.b;
});
worker.handle("refuse", () => {
  throw new Permanent("no");
});

function expect(what, is, wanted) {
  if (JSON.stringify(is) !== JSON.stringify(wanted)) throw new Error(`${what}: ${JSON.stringify(is)}`);
}

const working = worker.run({ signals: false });
const jobs = Array.from({ length: 50 }, (_, n) => ({
  kind: "add",
  queue,
  payload: { a: n, b: 1 },
  retry: "fixed:base=10ms",
}));
const items = await client.enqueueMany(jobs);
const results = await Promise.all(items.map((item) => client.result(item.id, { timeout: "60s" })));
expect(
  "results",
  results,
  jobs.map((job) => job.payload.a + 1),
);
expect(
  "attempts",
  (await client.history(items[0].id)).map((attempt) => attempt.status),
  ["FAILED", "SUCCESS"],
);
const refused = await client.enqueue("refuse", {}, { queue });
try {
  await client.result(refused.id, { timeout: "60s" });
  throw new Error("it should have failed");
} catch (error) {
  if (!(error instanceof JobNotSucceeded)) throw error;
  expect("reason", error.job.reason, "permanent");
}
await worker.stop();
await working;
process.stdout.write(`${process.argv[2]}: 50 jobs retried and succeeded, one refused, the worker drained\n`);
