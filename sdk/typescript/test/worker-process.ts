/** A worker in a process of its own, to be stopped and killed: worker-process.js URL QUEUE LEASE GRACE. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Worker } from "../src/index.js";

const [url = "", queue = "", lease = "", grace = ""] = process.argv.slice(2);
const log = (level: string, message: string) => process.stderr.write(`${level} ${message}\n`);
const worker = new Worker({ url, queues: [queue], concurrency: 4, lease, grace, pollWait: 500, log });

// Announces itself, then works until a file is there.
worker.handle<string>("until-file", async (job, ctx) => {
  writeFileSync(join(job.payload, `started-${ctx.attempt}`), "");
  while (!existsSync(join(job.payload, "go"))) await sleep(10);
  return `attempt ${ctx.attempt}`;
});
await worker.run();
// A handler that never ends must not keep the process.
process.exit(0);
