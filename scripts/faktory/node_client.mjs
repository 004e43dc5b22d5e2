// The npm package `faktory-worker`, unchanged: produce QUEUE MARK, or work QUEUE OUT WID.
import assert from "node:assert/strict";
import { appendFileSync, readFileSync } from "node:fs";
import faktory from "faktory-worker";

const [action, queue, argument, wid] = process.argv.slice(2);

if (action === "produce") {
  const client = await faktory.connect();
  const push = async (jobtype, text, fields) => Object.assign(client.job(jobtype, text), { queue, ...fields }).push();
  await push("write", `plain ${argument}`, {});
  await push("write", `later ${argument}`, { at: new Date(Date.now() + 2000).toISOString() });
  await push("flaky", `flaky ${argument}`, { custom: { policy: "fixed:base=1s" } });
  const rejected = await client.pushBulk([{ jobtype: "write", args: [`bulk ${argument}`], queue }]);
  assert.deepEqual(rejected, {});
  assert.ok((await client.info()).faktory.queues[queue] >= 2);
  await client.close();
} else {
  const out = argument;
  const write = (text) => appendFileSync(out, `${text}\n`);
  faktory.register("write", async (text) => write(text));
  faktory.register("flaky", (text) => async ({ job }) => {
    if (!job.failure) {
      write("flaky failed");
      throw Object.assign(new Error("not yet"), { code: "ValueError" });
    }
    // The job comes back with what was reported.
    assert.equal(job.failure.errtype, "ValueError");
    assert.equal(job.failure.message, "not yet");
    assert.ok(job.failure.backtrace.some((line) => line.includes("node_client.mjs")));
    write(text);
  });
  const worker = await faktory.work({ queues: [queue], wid, beatInterval: 1, concurrency: 2, timeout: 5 });
  worker.on("error", (error) => console.error(error));
}
