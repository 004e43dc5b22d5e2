/** Every call of the client, against the real server. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { test } from "node:test";
import {
  Client,
  Conflict,
  InvalidRequest,
  JobNotSucceeded,
  NotFound,
  NotSent,
  Unauthorized,
  verifyWebhook,
  WaitTimeout,
  WebhookError,
  Worker,
} from "../src/index.js";
import { BINARY, DEADLINE, ENVIRONMENT, freePort, onBothStores, Server, until } from "./server.js";

onBothStores("client", (world) => {
  test("enqueue takes every option", async () => {
    const queue = world.queue();
    const job = await world.client.enqueue(
      "email",
      { to: "ada@example.com", text: "grüße 🎉" },
      {
        queue,
        priority: "high",
        delay: "1h",
        retry: { policy: "stepped", maxRetries: 5 },
        delivery: "AT_MOST_ONCE",
        timeout: 1500,
        startBy: new Date(Date.now() + 7_200_000),
        idempotencyKey: `k-${queue}`,
        idempotencyWindow: "live",
        limitKey: "customer-7",
        webhook: { url: "https://example.com/done", events: ["failed"] },
      },
    );
    assert.deepEqual([job.state, job.kind, job.queue, job.priority], ["queued", "email", queue, "high"]);
    assert.deepEqual(job.payload, { to: "ada@example.com", text: "grüße 🎉" });
    assert.deepEqual([job.maxAttempts, job.delivery, job.timeoutMs, job.existing], [1, "AT_MOST_ONCE", 1500, false]);
    assert.equal(job.limitKey, "customer-7");
    assert.equal(Date.parse(job.runAt) - Date.parse(job.createdAt), 3_600_000);
    assert.equal((await world.client.get(job.id)).id, job.id);
  });

  test("idempotency key", async () => {
    const queue = world.queue();
    const first = await world.client.enqueue("email", { n: 1 }, { queue, idempotencyKey: queue });
    const again = await world.client.enqueue("email", { n: 1 }, { queue, idempotencyKey: queue });
    assert.deepEqual([again.id, again.existing], [first.id, true]);
    await assert.rejects(
      world.client.enqueue("email", { n: 2 }, { queue, idempotencyKey: queue }),
      (error) => error instanceof Conflict && error.type === "urn:windlass:problem:key-conflict",
    );
  });

  test("wrong fields are named", async () => {
    await assert.rejects(world.client.enqueue("email", 1, { queue: "Not A Queue", retry: "nonsense" }), (error) => {
      assert.ok(error instanceof InvalidRequest);
      const pointers = error.faults.map((fault) => fault.pointer);
      return pointers.includes("/queue") && pointers.includes("/retry");
    });
    await assert.rejects(world.client.get(1e15), NotFound);
  });

  test("many at once, listed page by page", async () => {
    const queue = world.queue();
    const jobs = Array.from({ length: 50 }, (_, n) => ({ kind: "a", payload: n, queue }));
    const items = await world.client.enqueueMany(jobs);
    assert.ok(items.every((item) => item.result === "created"));
    const bad = [
      { kind: "a", queue },
      { kind: "", queue },
    ];
    await assert.rejects(world.client.enqueueMany(bad), InvalidRequest);
    const mixed = await world.client.enqueueMany(bad, { atomic: false });
    assert.deepEqual(
      mixed.map((item) => item.result),
      ["created", "refused"],
    );
    assert.equal((await world.client.list({ queue, limit: 20 })).items.length, 20);
    const ids = new Set<number>();
    for await (const job of world.client.iterate({ queue, limit: 20 })) ids.add(job.id);
    assert.equal(ids.size, 51);
  });

  test("cancel, replay, amend, wait", async () => {
    const { client } = world;
    const { id } = await client.enqueue("email", null, { queue: world.queue(), delay: "1h" });
    assert.equal((await client.amend(id, { priority: "highest", delay: 60_000 })).priority, "highest");
    assert.equal((await client.cancel(id)).state, "cancelled");
    await assert.rejects(client.cancel(id), Conflict);
    const replayed = await client.replay(id);
    assert.deepEqual([replayed.state, replayed.replays], ["queued", 1]);
    await client.amend(id, { delay: "1h" });
    await assert.rejects(client.wait(id, { timeout: 100 }), WaitTimeout);
    await assert.rejects(client.wait(id, { signal: AbortSignal.timeout(100) }));
    await client.cancel(id);
    await assert.rejects(client.result(id, { timeout: DEADLINE }), JobNotSucceeded);
  });

  test("schedules", async () => {
    const { schedules } = world.client;
    const job = { kind: "digest", queue: world.queue() };
    const made = await schedules.create({ cron: "0 9 * * mon-fri", timezone: "Europe/Berlin", job });
    assert.deepEqual(await schedules.get(made.id), made);
    assert.ok((await schedules.list({ limit: 100 })).items.some((one) => one.id === made.id));
    assert.equal((await schedules.change(made.id, { cron: "0 10 * * *" })).cron, "0 10 * * *");
    assert.equal((await schedules.preview(made.id, { count: 3 })).length, 3);
    assert.equal((await schedules.pause(made.id)).paused, true);
    assert.equal((await schedules.resume(made.id)).paused, false);
    assert.equal((await schedules.trigger(made.id)).scheduleId, made.id);
    await schedules.remove(made.id);
    await assert.rejects(schedules.get(made.id), NotFound);
    assert.equal((await schedules.previewNew({ every: 30_000, count: 4 })).length, 4);
  });

  test("policies, and any other call", async () => {
    const { policies } = world.client;
    const preview = await policies.preview("exponential:base=1s,cap=5m,jitter=full,retries=5");
    assert.deepEqual(
      preview.delays.map((delay) => delay.delayMs),
      [1000, 2000, 4000, 8000, 16_000],
    );
    assert.ok((await policies.list()).some((policy) => policy.name === "full-jitter"));
    assert.equal((await policies.get("http")).preset, true);
    await assert.rejects(policies.preview("exponential:base=never"), InvalidRequest);
    assert.ok("items" in (await world.client.request<object>("GET", "/api/v1/queues")));
  });

  test("a received webhook is genuine", async () => {
    const received: { body: string; headers: IncomingHttpHeaders }[] = [];
    const receiver = createServer((request, response) => {
      let body = "";
      request.on("data", (part) => {
        body += part;
      });
      request.on("end", () => {
        received.push({ body, headers: request.headers });
        response.writeHead(204).end();
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
    const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    try {
      const { port } = receiver.address() as { port: number };
      const webhook = { url: `http://127.0.0.1:${port}/done`, events: ["cancelled" as const], secret };
      const job = await world.client.enqueue("email", null, { queue: world.queue(), delay: "1h", webhook });
      await world.client.cancel(job.id);
      await until(() => received.length > 0, "a webhook arrived");
      const http = { url: webhook.url, headers: { "x-test": "1" } };
      const call = await world.client.enqueue({ http, payload: { a: 1 }, retry: "once", queue: world.queue() });
      assert.equal((await world.client.wait(call.id, { timeout: DEADLINE })).state, "succeeded");
      assert.equal(received[1]?.body, '{"a":1}');
    } finally {
      receiver.closeAllConnections();
      receiver.close();
    }
    const [first] = received;
    assert.ok(first);
    assert.deepEqual(await verifyWebhook(first.body, first.headers, secret), JSON.parse(first.body));
    await assert.rejects(verifyWebhook(`${first.body} `, first.headers, secret), WebhookError);
  });
});

test("an unreachable server is named", async () => {
  const url = `http://127.0.0.1:${await freePort()}`;
  await assert.rejects(new Client({ url, retries: 1 }).get(1), NotSent);
});

test("wrong use is named", () => {
  assert.throws(() => new Client({ url: "ftp://example.com" }), /http:\/\//);
  assert.throws(() => new Worker({ concurrency: 0 }), /at least 1/);
  assert.throws(() => new Worker({ lease: "soon" }), /not a duration/);
  assert.throws(() => new Worker().start(), /no handlers/);
  assert.throws(() => new Worker().handle("a", () => {}).handle("a", () => {}), /has a handler already/);
});

test("tokens", async () => {
  const server = new Server("sqlite");
  const create = ["token", "create", "app", "--store", server.store, "--json", "--scope", "enqueue"];
  const made = execFileSync(BINARY, create, { cwd: server.folder, env: ENVIRONMENT, encoding: "utf8" });
  const token = /wl_[\w-]+/.exec(made)?.[0];
  assert.ok(token);
  await server.start();
  try {
    await assert.rejects(new Client({ url: server.url }).get(1), Unauthorized);
    assert.equal((await new Client({ url: server.url, token }).enqueue("a")).state, "queued");
    await assert.rejects(new Worker({ url: server.url }).handle("a", () => {}).run(), Unauthorized);
  } finally {
    await server.remove();
  }
});
