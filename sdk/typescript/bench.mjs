// Jobs per second of a worker with empty handlers, after `npm run build`: node bench.mjs [JOBS] [CONCURRENCY].
// The server is WINDLASS_SERVER.
import { Client, Worker } from "./dist/src/index.js";

const [jobs = 10_000, concurrency = 100] = process.argv.slice(2).map(Number);
const queue = `bench-${crypto.randomUUID().slice(0, 8)}`;
const client = new Client();
for (let first = 0; first < jobs; first += 5000) {
  await client.enqueueMany(Array(Math.min(5000, jobs - first)).fill({ kind: "empty", queue }));
}
const worker = new Worker({ queues: [queue], concurrency, pollWait: 1000 }).handle("empty", () => {});
const began = performance.now();
worker.start();
while (worker.stats.succeeded < jobs) await new Promise((resolve) => setTimeout(resolve, 5));
const rate = jobs / ((performance.now() - began) / 1000);
await worker.stop();
process.stdout.write(`async handlers: ${Math.round(rate)} jobs/s (${jobs} jobs, concurrency ${concurrency})\n`);
