/** Everything a handler can do, against the real server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { CancelJob, Client, InvalidRequest, Permanent, RetryAfter, RetryIn, Snooze } from "../src/index.js";
import { aborted, FAST, gate, onBothStores, until } from "./server.js";

const WAIT = { timeout: "20s" };

onBothStores("worker", (world) => {
  test("results, notes and what handlers see", async () => {
    const { client } = world;
    const queue = world.queue();
    const keys = new Set<string>();
    const worker = world.worker(queue, { name: `w-${queue}` });
    worker.handle<number[]>("add", async (job, ctx) => {
      keys.add(ctx.idempotencyKey);
      ctx.note(`attempt ${ctx.attempt} of ${job.maxAttempts}`);
      if (!ctx.isLastAttempt) throw new RangeError("not yet");
      return { sum: job.payload.reduce((a, b) => a + b), text: "grüße 🎉", left: ctx.remaining() ?? null };
    });
    worker.handle("timed", (_job, ctx) => ctx.deadline instanceof Date);
    await using _ = worker.start();
    const job = await client.enqueue("add", [1, 2, 3], { queue, retry: "fixed:base=10ms,jitter=none,retries=2" });
    const timed = await client.enqueue("timed", null, { queue, timeout: "10s" });
    assert.deepEqual(await client.result(job.id, WAIT), { sum: 6, text: "grüße 🎉", left: null });
    assert.equal(await client.result(timed.id, WAIT), true);
    assert.equal(keys.size, 1);
    const history = await client.history(job.id);
    assert.deepEqual(
      history.map((one) => one.status),
      ["FAILED", "FAILED", "SUCCESS"],
    );
    assert.deepEqual([history[0]?.errorClass, history[0]?.error], ["RangeError", "not yet"]);
    assert.deepEqual([history[2]?.note, history[2]?.worker], ["attempt 3 of 3", `w-${queue}`]);
  });

  test("jobs carry the trace context to their worker", async () => {
    const queue = world.queue();
    const given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    const current = "00-0af7651916cd43dd8448eb211c80319c-00000000000000ab-01";
    const traced = new Client({ url: world.server.url, traceparent: () => current });
    await using _ = world
      .worker(queue)
      .handle("traced", (job) => job.traceparent)
      .start();
    const [batch] = await traced.enqueueMany([{ kind: "traced", queue }], { traceparent: given });
    const [plain] = await traced.enqueueMany([{ kind: "traced", queue }]);
    const jobs = [
      await world.client.enqueue("traced", null, { queue }),
      await world.client.enqueue("traced", null, { queue, traceparent: given }),
      await traced.enqueue({ kind: "traced", queue, traceparent: given }),
      await traced.enqueue("traced", null, { queue }),
    ];
    const ids = [...jobs, batch, plain].map((job) => job?.id ?? 0);
    const seen = await Promise.all(ids.map((id) => world.client.result(id, WAIT)));
    assert.deepEqual(seen, [null, given, given, current, given, current]);
  });

  test("what handlers can ask for", async () => {
    const { client } = world;
    const queue = world.queue();
    class CardDeclined extends Permanent {}
    const asked: Record<string, unknown> = {
      permanent: new CardDeclined("no funds"),
      after: new RetryAfter(200, "busy"),
      in: new RetryIn("50ms", "soon", { name: "RateLimited" }),
      snooze: new Snooze(50, "too early"),
      cancel: new CancelJob(),
      error: new URIError("wrong\u0000text"),
      text: "thrown text",
    };
    await using _ = world
      .worker(queue)
      .handle<string>("ask", (job, ctx) => {
        if (ctx.attempt === 1) throw asked[job.payload];
        return "second";
      })
      .start();
    const ended = async (name: string) => {
      const { id } = await client.enqueue("ask", name, { queue, retry: FAST });
      const job = await client.wait(id, WAIT);
      return { job, first: (await client.history(id))[0] };
    };
    const permanent = await ended("permanent");
    assert.deepEqual([permanent.job.reason, permanent.job.errorClass], ["permanent", "CardDeclined"]);
    const after = await ended("after");
    assert.deepEqual([after.first?.errorClass, after.job.result], ["RetryAfter", "second"]);
    assert.ok((after.first?.delayMs ?? 0) >= 200);
    const exactly = await ended("in");
    assert.deepEqual([exactly.first?.errorClass, exactly.first?.delayMs], ["RateLimited", 50]);
    const snoozed = await ended("snooze");
    assert.deepEqual([snoozed.first?.status, snoozed.job.failures], ["SNOOZED", 0]);
    assert.equal((await ended("cancel")).job.state, "cancelled");
    assert.equal((await ended("error")).first?.errorClass, "URIError");
    assert.equal((await ended("text")).first?.error, "thrown text");
  });

  test("errors of errors: whatever is thrown, the worker goes on", async () => {
    const { client } = world;
    const queue = world.queue();
    const thrown: Record<string, () => unknown> = {
      mute: () => Object.create(null),
      negative: () => new RetryAfter(-1),
      text: () => new RetryAfter("next tuesday", "busy"),
    };
    await using _ = world
      .worker(queue, { concurrency: 1 })
      .handle<string>("throw", (job) => {
        throw thrown[job.payload]?.();
      })
      .start();
    const ended = async (name: string) =>
      await client.wait((await client.enqueue("throw", name, { queue, retry: "once" })).id, WAIT);
    assert.equal((await ended("mute")).error, "what the handler threw could not be read");
    assert.equal((await ended("negative")).errorClass, "RangeError");
    const text = await ended("text");
    assert.deepEqual([text.errorClass, text.reason], ["OutcomeRefused", "exhausted"]);
    assert.match(text.error ?? "", /RetryAfter: busy/);
  });

  test("results that cannot be stored", async () => {
    const { client } = world;
    const queue = world.queue();
    const results: Record<string, unknown> = {
      bigint: 1n,
      huge: "x".repeat(70_000),
      function: () => {},
      half: { text: "\ud800" },
      largest: "x".repeat(65_000),
    };
    await using _ = world
      .worker(queue)
      .handle<string>("result", (job) => results[job.payload])
      .start();
    const names = Object.keys(results);
    const items = await client.enqueueMany(names.map((payload) => ({ kind: "result", payload, queue })));
    for (const [i, name] of names.entries()) {
      const job = await client.wait(items[i]?.id ?? 0, WAIT);
      if (name === "largest") assert.equal(job.state, "succeeded");
      else assert.deepEqual([name, job.errorClass], [name, name === "half" ? "OutcomeRefused" : "BadResult"]);
    }
  });

  test("an unknown kind is a failure, with a server that hands out jobs of every kind", async () => {
    const queue = world.queue();
    let refused = 0;
    const withoutKinds: typeof fetch = async (input, init) => {
      if (!String(input).endsWith("/leases") || !String(init?.body).includes('"kinds"')) return fetch(input, init);
      refused += 1;
      const problem = { title: "Bad Request", detail: "unknown field `kinds`" };
      return new Response(JSON.stringify(problem), { status: 400 });
    };
    await using _ = world
      .worker(queue, { fetch: withoutKinds })
      .handle("known", () => {})
      .start();
    const { id } = await world.client.enqueue("unknown", null, { queue, retry: "once" });
    assert.equal((await world.client.wait(id, WAIT)).errorClass, "UnknownKind");
    assert.equal(refused, 1);
  });

  test("jobs of other kinds are left to other workers", async () => {
    const { client } = world;
    const queue = world.queue();
    // A server that does not know `kinds` hands them out in any order: retries bring each to its worker.
    const retry = "fixed:base=10ms,jitter=none,retries=1000";
    const left = await client.enqueue("other", null, { queue, retry });
    await using _ = world
      .worker(queue)
      .handle("known", () => "known")
      .start();
    const known = await client.enqueue("known", null, { queue, retry });
    assert.equal(await client.result(known.id, WAIT), "known");
    assert.ok(["queued", "retrying", "running"].includes((await client.get(left.id)).state));
    await using _other = world
      .worker(queue)
      .handle("other", () => "other")
      .start();
    assert.equal(await client.result(left.id, WAIT), "other");
  });

  test("a draining server is not hammered", async () => {
    const asked: number[] = [];
    const draining: typeof fetch = async () => {
      asked.push(performance.now());
      const headers = { "retry-after": "1" };
      return new Response('{"type":"urn:windlass:problem:draining"}', { status: 503, headers });
    };
    await using _ = world
      .worker(world.queue(), { fetch: draining })
      .handle("a", () => {})
      .start();
    await until(() => asked.length === 3, "the worker asked again");
    assert.ok(asked.every((at, i) => i === 0 || at - (asked[i - 1] ?? 0) >= 990));
  });

  test("timeouts", async () => {
    const { client } = world;
    const queue = world.queue();
    const reasons: unknown[] = [];
    const worker = world.worker(queue);
    worker.handle(
      "wait",
      async (_job, ctx) => {
        await aborted(ctx.signal);
        reasons.push(ctx.cancelReason);
        ctx.signal.throwIfAborted();
      },
      { timeout: 100 },
    );
    await using _ = worker.start();
    const jobs = [
      await client.enqueue("wait", null, { queue, retry: "once" }),
      await client.enqueue("wait", null, { queue, retry: "once", timeout: "200ms" }),
    ];
    for (const job of jobs) assert.equal((await client.wait(job.id, WAIT)).errorClass, "Timeout");
    assert.deepEqual(reasons, ["timeout", "timeout"]);
  });

  for (const stubborn of [false, true]) {
    test(`cancel of a running job${stubborn ? " that succeeds all the same" : ""}`, async () => {
      const queue = world.queue();
      const started = gate();
      await using _ = world
        .worker(queue, { renewEvery: 100 })
        .handle("wait", async (_job, ctx) => {
          started.open();
          try {
            await sleep(20_000, undefined, { signal: ctx.signal });
          } catch (error) {
            if (!stubborn) throw error;
          }
          return ctx.cancelReason;
        })
        .start();
      const { id } = await world.client.enqueue("wait", null, { queue });
      await started.opened;
      assert.equal((await world.client.cancel(id)).cancelRequested, true);
      const ended = await world.client.wait(id, WAIT);
      assert.deepEqual([ended.state, ended.result], stubborn ? ["succeeded", "cancelled"] : ["cancelled", null]);
    });
  }

  test("leases are extended", async () => {
    const queue = world.queue();
    await using _ = world
      .worker(queue, { lease: "1s" })
      .handle("long", async (_job, ctx) => await sleep(2500, "done", { signal: ctx.signal }))
      .start();
    const { id } = await world.client.enqueue("long", null, { queue });
    assert.equal(await world.client.result(id, WAIT), "done");
    assert.equal((await world.client.get(id)).attempt, 1);
  });

  test("traces are dropped if the server refuses them", async () => {
    const queue = world.queue();
    await using _ = world
      .worker(queue, { sendTraces: true })
      .handle("fail", () => {
        throw new EvalError("no");
      })
      .start();
    const { id } = await world.client.enqueue("fail", null, { queue, retry: FAST });
    const ended = await world.client.wait(id, WAIT);
    assert.deepEqual([ended.errorClass, ended.reason, ended.attempt], ["EvalError", "exhausted", 4]);
  });

  test("a refused request ends the worker", async () => {
    const worker = world.worker("Not A Queue").handle("a", () => {});
    await assert.rejects(worker.run({ signals: false }), InvalidRequest);
  });
});
