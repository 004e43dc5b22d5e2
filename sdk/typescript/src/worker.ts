import { type Duration, milliseconds } from "./duration.js";
import { Engine, type Registered, type Settings, type Stats } from "./engine.js";
import { type Connection, Http } from "./http.js";
import type { Handler } from "./outcome.js";

export interface WorkerOptions extends Connection {
  /** The queues to work; all of them if absent. */
  queues?: readonly string[];
  /** Attempts at once; 10. */
  concurrency?: number;
  /** The worker's name in the history of jobs. */
  name?: string;
  /** How long a lease lasts without being extended; 30 s. */
  lease?: Duration;
  /** How often leases are extended: a third of `lease`. A cancelled job's handler learns of it then. */
  renewEvery?: Duration;
  /** How long one request waits for jobs, and so the longest that stopping an idle worker takes; 5 s. */
  pollWait?: Duration;
  /** How long running handlers may go on after a stop; 25 s. */
  grace?: Duration;
  /** Send stack traces of failures, which are kept with the attempt; true. */
  sendTraces?: boolean;
  /** Receives what happens around the jobs: lost connections, lost leases, drains. Nothing is printed by default. */
  log?: (level: "info" | "warn" | "error", message: string) => void;
}

export interface HandlerOptions {
  /** Holds for jobs that have no timeout of their own. */
  timeout?: Duration;
}

/**
 * Takes jobs of its queues and runs the handler of their kind.
 *
 * ```ts
 * const worker = new Worker({ queues: ["email"] });
 * worker.handle("email", async (job, ctx) => { … });
 * await worker.run();
 * ```
 */
export class Worker implements AsyncDisposable {
  readonly stats: Readonly<Stats>;
  /** @internal */
  readonly handlers = new Map<string, Registered>();
  readonly #http: Http;
  readonly #settings: Settings;
  readonly #stats: Stats;
  #engine: Engine | undefined;
  #done: Promise<void> | undefined;

  constructor(options: WorkerOptions = {}) {
    const lease = milliseconds(options.lease ?? 30_000);
    const concurrency = options.concurrency ?? 10;
    if (!Number.isInteger(concurrency) || concurrency < 1) throw new RangeError("concurrency must be at least 1");
    this.#http = new Http(options);
    this.#settings = {
      name: options.name ?? `js-${crypto.randomUUID().slice(0, 13)}`,
      queues: options.queues ?? [],
      concurrency,
      lease,
      renewEvery: options.renewEvery === undefined ? Math.floor(lease / 3) : milliseconds(options.renewEvery),
      pollWait: milliseconds(options.pollWait ?? 5000),
      grace: milliseconds(options.grace ?? 25_000),
      sendTraces: options.sendTraces ?? true,
      log: options.log ?? (() => {}),
    };
    const counts = { taken: 0, succeeded: 0, failed: 0, released: 0, refused: 0, leasesLost: 0, reconnections: 0 };
    this.#stats = counts;
    this.stats = counts;
  }

  /** The worker's name. */
  get name(): string {
    return this.#settings.name;
  }

  /** Registers the handler of a kind. */
  handle<P = unknown>(kind: string, handler: Handler<P>, options: HandlerOptions = {}): this {
    if (this.handlers.has(kind)) throw new Error(`the kind ${kind} has a handler already`);
    const timeout = options.timeout === undefined ? undefined : milliseconds(options.timeout);
    this.handlers.set(kind, { run: handler as Handler, timeout });
    return this;
  }

  /**
   * Works until it is stopped, then drains. Stops on SIGTERM and SIGINT unless `signals` is false; a second signal cuts
   * the grace time short.
   */
  async run(options: { signals?: boolean } = {}): Promise<void> {
    const off = (options.signals ?? true) ? onSignals(() => this.#engine?.stop()) : () => {};
    try {
      this.start();
      await this.#done;
    } finally {
      off();
    }
  }

  /** Works in the background; `stop` drains it. `await using worker = new Worker(…).handle(…).start()` does so by itself. */
  start(): this {
    if (this.handlers.size === 0) throw new Error("the worker has no handlers");
    if (this.#engine) throw new Error("the worker is running already");
    this.#engine = new Engine(this.#http, this.handlers, this.#settings, this.#stats);
    this.#done = this.#engine.run().finally(() => {
      this.#engine = undefined;
    });
    // Who calls `stop` or `run` sees the error; without them it must not end the process.
    this.#done.catch((error: unknown) => this.#settings.log("error", `the worker ended: ${String(error)}`));
    return this;
  }

  /**
   * Drains: takes no more jobs, lets running handlers finish within the grace time, reports, and resolves. The second call
   * cuts the grace time short.
   */
  async stop(): Promise<void> {
    this.#engine?.stop();
    await this.#done;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }
}

interface Signals {
  on?(name: string, listener: () => void): void;
  off?(name: string, listener: () => void): void;
}

/** Calls `stop` on SIGTERM and SIGINT, where there are signals. Returns how to end that. */
function onSignals(stop: () => void): () => void {
  const { process } = globalThis as { process?: Signals };
  const names = ["SIGTERM", "SIGINT"];
  if (typeof process?.on !== "function") return () => {};
  for (const name of names) process.on(name, stop);
  return () => {
    for (const name of names) process.off?.(name, stop);
  };
}
