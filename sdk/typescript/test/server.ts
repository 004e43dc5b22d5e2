/** The real server, on both stores. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, Worker, type WorkerOptions } from "../src/index.js";

export const BINARY = process.env.WINDLASS_BIN ?? "windlass";
export const DEADLINE = 120_000;
export const FAST = "fixed:base=10ms,jitter=none,retries=3";
/** The server refuses settings it does not know, such as the tests' own. On PostgreSQL it keeps to a schema of its own. */
export const ENVIRONMENT = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("WINDLASS_"))),
  WINDLASS_SCHEMA: "windlass_sdk_typescript",
};

/** Waits for a condition. Fails with its description when the deadline passes. */
export async function until(isSo: () => boolean | Promise<boolean>, what: string, deadline = DEADLINE): Promise<void> {
  const ends = Date.now() + deadline;
  while (!(await isSo())) {
    if (Date.now() > ends) throw new Error(`not within ${deadline} ms: ${what}`);
    await sleep(10);
  }
}

/** A server that can be killed and started again on the same store and port. */
export class Server {
  readonly folder = mkdtempSync(join(tmpdir(), "windlass-sdk-"));
  url = "";
  #port = 0;
  #process: ChildProcess | undefined;
  readonly store: string;

  constructor(store: "sqlite" | "postgres") {
    const postgres = process.env.WINDLASS_TEST_POSTGRES;
    if (store === "postgres" && !postgres) {
      throw new Error("WINDLASS_TEST_POSTGRES is not set; run the tests with scripts/with-postgres");
    }
    this.store = store === "sqlite" ? `sqlite:${join(this.folder, "jobs.db")}` : (postgres ?? "");
  }

  async start(): Promise<void> {
    this.#port ||= await freePort();
    this.url = `http://127.0.0.1:${this.#port}`;
    const log = openSync(join(this.folder, "server.log"), "a");
    const listen = ["--store", this.store, "--listen", `127.0.0.1:${this.#port}`];
    const flags = ["--allow-private-targets", "--quiet-jobs", "--grace", "2s"];
    const child = spawn(BINARY, ["serve", ...listen, ...flags], {
      cwd: this.folder,
      env: ENVIRONMENT,
      stdio: ["ignore", log, log],
    });
    this.#process = child;
    await until(async () => {
      if (child.exitCode !== null) {
        throw new Error(`the server ended: ${readFileSync(join(this.folder, "server.log"), "utf8").slice(-2000)}`);
      }
      return await fetch(`${this.url}/readyz`).then(
        (answer) => answer.ok,
        () => false,
      );
    }, "the server is ready");
  }

  /** kill -9. */
  async kill(): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (!child) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill("SIGKILL");
    await ended;
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A port that no outgoing connection takes, so that a server which starts again finds it free. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const probe = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once("error", () => resolve(false));
      probe.listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
}

/** What a test on one store uses. */
export interface World {
  server: Server;
  client: Client;
  /** A queue of the test's own: tests share a server. */
  queue: () => string;
  /** A worker with short times. */
  worker: (queue: string, options?: WorkerOptions) => Worker;
}

/** Declares the same tests for each store. */
export function onBothStores(title: string, tests: (world: World) => void): void {
  for (const store of ["sqlite", "postgres"] as const) {
    describe(`${title} (${store})`, { timeout: 180_000 }, () => {
      const world = {
        queue: () => `q${randomUUID().slice(0, 13)}`,
        worker: (queue: string, options: WorkerOptions = {}) =>
          new Worker({
            url: world.server.url,
            queues: [queue],
            concurrency: 4,
            lease: "5s",
            pollWait: 200,
            grace: "5s",
            ...options,
          }),
      } as World;
      before(async () => {
        world.server = new Server(store);
        await world.server.start();
        world.client = new Client({ url: world.server.url });
      });
      after(async () => {
        await world.server.remove();
      });
      tests(world);
    });
  }
}

/** A promise and the function that fulfils it. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** Fulfilled once the signal is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}
