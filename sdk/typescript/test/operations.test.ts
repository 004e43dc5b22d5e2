/** The calls of operators: queues, holds, kinds, dead letters, and why a job waits. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { InvalidRequest } from "../src/index.js";
import { onBothStores } from "./server.js";

onBothStores("operations", (world) => {
  test("queues", async () => {
    const { client } = world;
    const queue = world.queue();
    const { id } = await client.enqueue("email", null, { queue });
    const limits = { concurrency: 2, perKey: { rate: "100/1m" } };
    const settings = await client.queues.set(queue, { policy: "low-latency", limits, maxHold: 60_000 });
    assert.equal(settings.policy, "low-latency");
    const found = (await client.queues.list()).find(({ name }) => name === queue);
    assert.deepEqual([found?.due, found?.running, found?.limits?.concurrency], [1, 0, 2]);
    await assert.rejects(client.queues.set(queue, { limits: { concurrency: 0 } }), InvalidRequest);
    assert.equal(await client.queues.pause(queue), 1);
    const why = await client.why(id);
    assert.equal(why.waitingFor, "paused");
    assert.match(why.sentences.join(" "), /paused/);
    assert.equal(await client.queues.resume(queue), 1);
    assert.equal(await client.queues.purge(queue), 1);
    assert.equal((await client.get(id)).state, "cancelled");
  });

  test("holds", async () => {
    const { client } = world;
    const queue = world.queue();
    const key = `key-${queue}`;
    const { id } = await client.enqueue("email", null, { queue, limitKey: key });
    assert.equal(await client.holds.place({ queue, for: "1h", reason: "the provider is down" }), 1);
    const hold = (await client.holds.list()).find((one) => one.queue === queue);
    assert.deepEqual([hold?.origin, hold?.reason, hold?.key], ["operator", "the provider is down", null]);
    const why = await client.why(id);
    assert.deepEqual([why.waitingFor, why.until], ["hold", hold?.until]);
    assert.equal(await client.holds.release({ queue }), 1);
    assert.equal(await client.holds.place({ queue, key, until: new Date(Date.now() + 60_000) }), 1);
    assert.equal((await client.holds.list()).find((one) => one.queue === queue)?.key, key);
    assert.equal(await client.holds.release({ queue, key }), 1);
    await assert.rejects(client.holds.place({ queue }), InvalidRequest);
  });

  test("kinds", async () => {
    const { client } = world;
    const queue = world.queue();
    const name = `Kind of/${queue}`;
    // biome-ignore lint/suspicious/noThenProperty: the API's name
    const rules = [{ match: { class: "Deadlock*" }, then: "retry" as const }];
    assert.deepEqual(await client.kinds.set(name, { policy: "once", rules }), { policy: "once", rules });
    assert.deepEqual((await client.kinds.list())[name], { policy: "once", rules });
    assert.equal((await client.enqueue(name, null, { queue })).maxAttempts, 1);
    await assert.rejects(client.kinds.set(name, { policy: "nonsense" }), InvalidRequest);
    await client.kinds.remove(name);
    assert.equal((await client.kinds.list())[name], undefined);
    assert.ok((await client.enqueue(name, null, { queue })).maxAttempts > 1);
  });

  test("dead letters", async () => {
    const { client } = world;
    const queue = world.queue();
    await client.enqueueMany(Array(3).fill({ kind: "email", queue, retry: "once" }));
    const body = { worker: "w", queues: [queue], max: 3, waitMs: 5000 };
    const { jobs } = await client.request<{ jobs: object[] }>("POST", "/api/v1/leases", body);
    const results = (jobs as { id: number; attempt: number; lease: string }[]).map(({ id, attempt, lease }) => {
      return { id, attempt, lease, class: "Oops", message: "no" };
    });
    await client.request("POST", "/api/v1/leases/fail", { worker: "w", results });
    const { items } = await client.deadLetters.list({ queue });
    assert.equal(items.length, 3);
    const [group] = await client.deadLetters.groups({ queue });
    assert.deepEqual([group?.count, group?.errorClass], [3, "Oops"]);
    const ids = items.slice(0, 1).map(({ id }) => id);
    const replayed = await client.deadLetters.replay({ ids });
    assert.deepEqual([replayed.done, replayed.results[0]?.result], [1, "queued"]);
    const filter = { queue, class: "Oops" };
    assert.equal((await client.deadLetters.discard({ filter }, { reason: "known" })).done, 2);
    assert.equal((await client.deadLetters.list({ queue })).items.length, 0);
    await assert.rejects(client.deadLetters.discard({ filter: {} }), InvalidRequest);
  });
});
