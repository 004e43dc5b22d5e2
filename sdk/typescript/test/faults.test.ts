/** Kills, lost leases, drains, and a server that is away. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import { aborted, DEADLINE, FAST, gate, onBothStores, until, type World } from "./server.js";

// A nightly run makes these longer.
const JOBS = Number(process.env.SDK_TEST_JOBS ?? 3000);
const AWAY = Number(process.env.SDK_TEST_AWAY ?? 0) * 1000;
const WAIT = { timeout: DEADLINE };
const SCRIPT = fileURLToPath(new URL("./worker-process.js", import.meta.url));

/** A worker process and the folder it watches. */
class Process {
  readonly folder: string;
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;

  constructor(world: World, queue: string, times: { lease: string; grace: string }, folder?: string) {
    this.folder = folder ?? mkdtempSync(join(world.server.folder, "worker-"));
    const log = openSync(join(this.folder, "worker.log"), "a");
    const args = [SCRIPT, world.server.url, queue, times.lease, times.grace];
    this.child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", log] });
    this.ended = new Promise((resolve) => this.child.once("exit", resolve));
  }

  has(name: string): boolean {
    return existsSync(join(this.folder, name));
  }

  log(): string {
    return readFileSync(join(this.folder, "worker.log"), "utf8");
  }

  go(): void {
    writeFileSync(join(this.folder, "go"), "");
  }
}

onBothStores("faults", (world) => {
  const processes: Process[] = [];
  const run = (...args: ConstructorParameters<typeof Process>) => {
    const started = new Process(...args);
    processes.push(started);
    return started;
  };
  afterEach(() => {
    for (const one of processes.splice(0)) one.child.kill("SIGKILL");
  });

  test("server killed in the middle of a job", async () => {
    const { client, server } = world;
    const queue = world.queue();
    const [started, go] = [gate(), gate()];
    const worker = world.worker(queue, { lease: "20s", renewEvery: 200 });
    worker.handle("wait", async (_job, ctx) => {
      started.open();
      await go.opened;
      return `attempt ${ctx.attempt}`;
    });
    await using _ = worker.start();
    const job = await client.enqueue("wait", null, { queue, retry: FAST });
    await started.opened;
    await server.kill();
    // The handler ends while there is no server: its outcome must wait.
    go.open();
    await until(() => worker.stats.reconnections > 0, "the worker noticed");
    await server.start();
    assert.equal(await client.result(job.id, WAIT), "attempt 1");
    const next = await client.enqueue("wait", null, { queue });
    assert.equal(await client.result(next.id, WAIT), "attempt 1");
    assert.equal(worker.stats.refused, 0);
  });

  test("server away for a while", async () => {
    const { client, server } = world;
    const queue = world.queue();
    const seen = new Set<number>();
    const worker = world.worker(queue, { concurrency: 8 });
    worker.handle<number>("count", (job) => void seen.add(job.payload));
    const jobs = Array.from({ length: 200 }, (_, n) => ({
      kind: "count",
      payload: n,
      queue,
      delay: n * 10,
      retry: FAST,
    }));
    await client.enqueueMany(jobs);
    await using _ = worker.start();
    await until(() => seen.size > 20, "work began");
    await server.kill();
    const back = Date.now() + AWAY;
    const triedAgain = () => Date.now() >= back && worker.stats.reconnections >= 3;
    await until(triedAgain, "the worker tried again, more than once", AWAY + DEADLINE);
    await server.start();
    const succeeded = async () => (await client.list({ queue, state: "succeeded", limit: 200 })).items.length;
    await until(async () => (await succeeded()) === 200, "all were run and reported");
    assert.equal(seen.size, 200);
  });

  test("worker killed in the middle of a job", async () => {
    const queue = world.queue();
    const first = run(world, queue, { lease: "2s", grace: "5s" });
    const job = await world.client.enqueue("until-file", first.folder, { queue, retry: FAST });
    await until(() => first.has("started-1"), "the first attempt began");
    first.child.kill("SIGKILL");
    await first.ended;
    const second = run(world, queue, { lease: "2s", grace: "5s" }, first.folder);
    await until(() => second.has("started-2"), "the second attempt began");
    second.go();
    assert.equal(await world.client.result(job.id, WAIT), "attempt 2");
    assert.equal((await world.client.history(job.id))[0]?.errorClass, "WorkerLost");
  });

  test("lost lease: the handler is stopped, and what it returns all the same is refused", async () => {
    const queue = world.queue();
    const reasons: unknown[] = [];
    const worker = world.worker(queue, { lease: "1s", renewEvery: "4s", concurrency: 1 });
    worker.handle("slow", async (_job, ctx) => {
      if (ctx.attempt === 1) {
        await aborted(ctx.signal);
        reasons.push(ctx.cancelReason);
      }
      return `attempt ${ctx.attempt}`;
    });
    await using _ = worker.start();
    const job = await world.client.enqueue("slow", null, { queue, retry: FAST });
    assert.equal(await world.client.result(job.id, WAIT), "attempt 2");
    await until(() => worker.stats.refused === 1, "the first attempt's result was refused");
    assert.deepEqual(reasons, ["lease_lost"]);
    assert.equal(worker.stats.leasesLost, 1);
    const classes = (await world.client.history(job.id)).map((one) => one.errorClass);
    assert.deepEqual(classes, ["WorkerLost", null]);
  });

  test("SIGTERM drains", async () => {
    const queue = world.queue();
    const worker = run(world, queue, { lease: "10s", grace: "20s" });
    const job = await world.client.enqueue("until-file", worker.folder, { queue });
    await until(() => worker.has("started-1"), "the attempt began");
    worker.child.kill("SIGTERM");
    await until(() => worker.log().includes("draining"), "the worker drains");
    const later = await world.client.enqueue("until-file", worker.folder, { queue });
    worker.go();
    assert.equal(await worker.ended, 0);
    assert.equal(await world.client.result(job.id, WAIT), "attempt 1");
    assert.equal((await world.client.get(later.id)).state, "queued");
  });

  test("the end of the grace time gives jobs back", async () => {
    const queue = world.queue();
    const worker = run(world, queue, { lease: "60s", grace: "60s" });
    const job = await world.client.enqueue("until-file", worker.folder, { queue });
    await until(() => worker.has("started-1"), "the attempt began");
    worker.child.kill("SIGTERM");
    await until(() => worker.log().includes("draining"), "the worker drains");
    // The second signal cuts the grace time short, although the handler never ends.
    worker.child.kill("SIGTERM");
    assert.equal(await worker.ended, 0);
    const givenBack = await world.client.get(job.id);
    assert.deepEqual([givenBack.state, givenBack.failures], ["queued", 0]);
    assert.equal((await world.client.history(job.id))[0]?.status, "RELEASED");
  });

  test("stopping takes no job along", async () => {
    const queue = world.queue();
    for (let round = 0; round < 10; round++) {
      await using _ = world
        .worker(queue, { lease: "60s" })
        .handle("a", () => {})
        .start();
      await world.client.enqueueMany(Array.from({ length: 5 }, () => ({ kind: "a", queue })));
    }
    const running = await world.client.list({ queue, state: "running" });
    assert.deepEqual(running.items, []);
  });

  test("thousands of jobs at concurrency 100", async () => {
    const queue = world.queue();
    const counts = new Map<number, number>();
    const worker = world.worker(queue, { concurrency: 100 });
    worker.handle<number>("count", (job) => void counts.set(job.payload, (counts.get(job.payload) ?? 0) + 1));
    await world.client.enqueueMany(Array.from({ length: JOBS }, (_, n) => ({ kind: "count", payload: n, queue })));
    await using _ = worker.start();
    await until(() => worker.stats.succeeded === JOBS, "all were run and reported", 120_000);
    assert.equal(counts.size, JOBS);
    assert.ok([...counts.values()].every((count) => count === 1));
  });
});
