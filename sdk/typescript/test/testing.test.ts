/** Test mode: handlers in process, without a server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Conflict, NotFound, Permanent, RetryIn, Snooze, Worker } from "../src/index.js";
import { InProcess } from "../src/testing.js";
import { aborted } from "./server.js";

const worker = new Worker()
  .handle<number>("double", (job, ctx) => {
    ctx.note("easy");
    return job.payload * 2;
  })
  .handle("slow", async (_job, ctx) => await aborted(ctx.signal), { timeout: 10 })
  .handle("third-time-lucky", (_job, ctx) => {
    if (ctx.attempt < 3) throw new RangeError(`attempt ${ctx.attempt}`);
    return "done";
  })
  .handle<string>("scripted", (job, ctx) => {
    const errors: Record<string, Error> = {
      permanent: new Permanent("no"),
      snooze: new Snooze("30s"),
      in: new RetryIn("5s"),
      fail: new Error("away"),
    };
    if (ctx.attempt === 1 || job.payload === "fail") throw errors[job.payload];
  });

test("result, note and list", async () => {
  const queue = new InProcess(worker);
  const job = await queue.client.enqueue("double", 21);
  assert.equal(await queue.runDue(), 1);
  assert.equal(await queue.client.result(job.id), 42);
  assert.equal((await queue.client.history(job.id))[0]?.note, "easy");
  assert.deepEqual(
    (await queue.client.list({ state: "succeeded" })).items.map((one) => one.id),
    [job.id],
  );
});

test("retries move the time", async () => {
  const queue = new InProcess(worker);
  const job = await queue.client.enqueue("third-time-lucky");
  const began = queue.now.getTime();
  assert.equal(await queue.runDue(), 1);
  assert.equal((await queue.client.get(job.id)).state, "retrying");
  assert.equal(await queue.runAll(), 2);
  assert.equal(queue.now.getTime() - began, 180_000);
  assert.equal(await queue.client.result(job.id), "done");
});

test("what handlers ask for", async () => {
  const queue = new InProcess(worker);
  const { client } = queue;
  const ids: Record<string, number> = {};
  for (const name of ["permanent", "snooze", "in", "fail"]) {
    ids[name] = (await client.enqueue("scripted", name, { retry: { maxRetries: 2 } })).id;
  }
  const slow = await client.enqueue("slow", null, { retry: "once" });
  const unknown = await client.enqueue("unheard-of", null, { retry: "once" });
  await queue.runAll();
  const ended = async (name: string) => await client.get(ids[name] ?? 0);
  assert.equal((await ended("permanent")).reason, "permanent");
  assert.deepEqual([(await ended("snooze")).state, (await ended("snooze")).failures], ["succeeded", 0]);
  assert.deepEqual([(await ended("in")).state, (await ended("in")).failures], ["succeeded", 1]);
  assert.deepEqual([(await ended("fail")).reason, (await ended("fail")).attempt], ["exhausted", 3]);
  assert.equal((await client.get(slow.id)).errorClass, "Timeout");
  assert.equal((await client.get(unknown.id)).errorClass, "UnknownKind");
});

test("batches, cancel, replay and keys", async () => {
  const queue = new InProcess(worker);
  const { client } = queue;
  await client.enqueueMany([1, 2, 3].map((payload) => ({ kind: "double", payload })));
  assert.equal(await queue.runAll(), 3);
  const options = { idempotencyKey: "k", delay: 60_000 };
  const job = await client.enqueue("double", 1, options);
  assert.equal((await client.enqueue("double", 1, options)).existing, true);
  await assert.rejects(client.enqueue("double", 2, options), Conflict);
  assert.equal(await queue.runDue(), 0);
  queue.advance("1m");
  await client.cancel(job.id);
  assert.equal(await queue.runDue(), 0);
  await client.replay(job.id);
  assert.equal(await queue.runDue(), 1);
  await assert.rejects(client.get(99), NotFound);
});
