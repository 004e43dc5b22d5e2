import { Backoff, sleep } from "./backoff.js";
import { Context } from "./context.js";
import { ApiError, type CancelReason, InvalidRequest } from "./errors.js";
import { API, type Http, isTemporary } from "./http.js";
import {
  CANCELLED,
  type Handler,
  type Outcome,
  refused,
  released,
  runHandler,
  timedOut,
  unknownKind,
} from "./outcome.js";
import type { LeasedJob } from "./types.js";

const MAX_ITEMS = 1000;
/** The server takes bodies of 8 MiB. */
const MAX_LETTERS = 2 * 1024 * 1024;
/** How long handlers may take to stop once they are cancelled at the end of the grace time. */
const UNWIND = 1000;
/** How long the last reports may take. */
const LAST_REPORTS = 5000;
/** A short wait for more free slots, so that a busy worker takes jobs in batches. */
const GATHER = 5;
/** Time for an answer beyond the wait that was asked for. */
const MARGIN = 10_000;
/** The longest a timer can wait. */
const MAX_TIMER = 2 ** 31 - 1;

export interface Settings {
  name: string;
  queues: readonly string[];
  concurrency: number;
  lease: number;
  renewEvery: number;
  pollWait: number;
  grace: number;
  sendTraces: boolean;
  log: (level: "info" | "warn" | "error", message: string) => void;
}

/** Counts since the worker started. */
export interface Stats {
  taken: number;
  succeeded: number;
  /** Reported failures, snoozes and cancelled jobs. */
  failed: number;
  released: number;
  /** Outcomes that the server did not accept, because the lease was lost. */
  refused: number;
  leasesLost: number;
  reconnections: number;
}

export interface Registered {
  run: Handler;
  timeout: number | undefined;
}

/** A job this worker holds a lease on, until its outcome is reported. */
interface Held {
  job: LeasedJob;
  context: Context;
  outcome?: Outcome;
}

interface Item {
  id: number;
  attempt: number;
  lease: string;
}

/** One run of a worker. */
export class Engine {
  readonly #held = new Map<string, Held>();
  readonly #running = new Set<Held>();
  #outcomes: Held[] = [];
  #sendTraces: boolean;
  #sendKinds = true;
  readonly #stop = new AbortController();
  readonly #stopNow = new AbortController();
  /** Ends the loops that go on during the drain. */
  readonly #end = new AbortController();
  readonly #slots = new Bell();
  readonly #reports = new Bell();
  readonly #progress = new Bell();

  constructor(
    private readonly http: Http,
    private readonly handlers: ReadonlyMap<string, Registered>,
    private readonly settings: Settings,
    private readonly stats: Stats,
  ) {
    this.#sendTraces = settings.sendTraces;
  }

  /** Drain; the second time: give up the grace time. */
  stop(): void {
    if (this.#stop.signal.aborted) this.#stopNow.abort();
    this.#stop.abort();
    this.#slots.ring();
    this.#progress.ring();
  }

  /** Works until it is stopped, then drains. Rejects with what makes work impossible, such as a refused token. */
  async run(): Promise<void> {
    const loops = [this.#renewLoop(), this.#reportLoop()];
    try {
      await this.#takeLoop();
    } finally {
      this.#stop.abort();
      await this.#drain();
      this.#end.abort();
      this.#reports.ring();
      await Promise.all(loops);
    }
  }

  async #drain(): Promise<void> {
    this.settings.log("info", `draining: ${this.#running.size} attempts may go on for ${this.settings.grace} ms`);
    await this.#until(() => this.#running.size === 0 || this.#stopNow.signal.aborted, this.settings.grace);
    if (this.#running.size > 0) {
      for (const held of this.#running) held.context.cancel("shutdown");
      await this.#until(() => this.#running.size === 0, UNWIND);
      for (const held of this.#running) this.#decide(held, released(true));
    }
    if (!(await this.#until(() => this.#held.size === 0, LAST_REPORTS))) {
      this.settings.log("warn", `${this.#held.size} outcomes could not be reported; their jobs run again`);
    }
  }

  async #until(isDone: () => boolean, limit: number): Promise<boolean> {
    const late = new AbortController();
    const timer = setTimeout(() => {
      late.abort();
      this.#progress.ring();
    }, limit);
    while (!isDone() && !late.signal.aborted) await this.#progress.rung();
    clearTimeout(timer);
    return isDone();
  }

  // --- Take ---------------------------------------------------------------------------------------------------------

  async #takeLoop(): Promise<void> {
    const backoff = new Backoff();
    while (!this.#stop.signal.aborted) {
      const free = await this.#freeSlots();
      if (this.#stop.signal.aborted || free === 0) continue;
      const began = Date.now();
      let jobs: LeasedJob[];
      try {
        jobs = await this.#take(free);
      } catch (error) {
        if (this.#sendKinds && isAboutKinds(error)) {
          this.settings.log(
            "warn",
            "the server does not know `kinds`; jobs of other kinds fail with class UnknownKind",
          );
          this.#sendKinds = false;
          continue;
        }
        if (!isTemporary(error)) throw error;
        if (this.#stop.signal.aborted) return;
        await this.#waitForServer(error, backoff);
        continue;
      }
      for (const job of jobs) this.#start(job);
      if (jobs.length > 0 || Date.now() - began >= this.settings.pollWait / 2) backoff.reset();
      // The server answered at once and with nothing: it is stopping.
      else await sleep(backoff.next(), this.#stop.signal);
    }
  }

  async #freeSlots(): Promise<number> {
    const limit = this.settings.concurrency;
    while (this.#running.size >= limit && !this.#stop.signal.aborted) await this.#slots.rung();
    if ((limit - this.#running.size) * 8 < limit) await sleep(GATHER, this.#stop.signal);
    return limit - this.#running.size;
  }

  async #take(count: number): Promise<LeasedJob[]> {
    const { name, queues, pollWait, lease } = this.settings;
    const body = {
      worker: name,
      max: Math.min(count, MAX_ITEMS),
      waitMs: pollWait,
      leaseMs: lease,
      ...(queues.length > 0 ? { queues } : {}),
      ...(this.#sendKinds ? { kinds: [...this.handlers.keys()] } : {}),
    };
    // A stop lets the request end: dropping it could lose an answer that is on its way. The second stop drops it.
    const call = { method: "POST", path: `${API}/leases`, body, repeatable: true };
    const answer = await this.http.once<{ jobs: LeasedJob[] }>(call, pollWait + MARGIN, this.#stopNow.signal);
    return answer.value.jobs;
  }

  async #waitForServer(error: unknown, backoff: Backoff): Promise<void> {
    const delay = backoff.next(error instanceof ApiError ? error.retryAfter : undefined);
    this.settings.log("warn", `no jobs from the server, trying again in ${Math.round(delay)} ms: ${String(error)}`);
    this.stats.reconnections += 1;
    await sleep(delay, this.#stop.signal);
  }

  // --- Run ----------------------------------------------------------------------------------------------------------

  #start(job: LeasedJob): void {
    const handler = this.handlers.get(job.kind);
    const held: Held = { job, context: new Context(job, job.timeoutMs ?? handler?.timeout) };
    this.#held.set(job.lease, held);
    this.stats.taken += 1;
    if (this.#stop.signal.aborted) this.#decide(held, released(false));
    else if (!handler) this.#decide(held, unknownKind(job));
    else {
      this.#running.add(held);
      void this.#run(held, handler);
    }
  }

  async #run(held: Held, handler: Registered): Promise<void> {
    const { timeout } = held.context;
    const timer =
      timeout !== undefined && timeout <= MAX_TIMER ? setTimeout(() => this.#timeOut(held), timeout) : undefined;
    const outcome = await runHandler(handler.run, held.job, held.context, this.#sendTraces);
    clearTimeout(timer);
    this.#running.delete(held);
    this.#slots.ring();
    const decided = outcome ?? this.#outcomeOfCancelled(held);
    if (decided) this.#decide(held, decided);
    else this.#forget(held);
  }

  #timeOut(held: Held): void {
    // The failure counts at once; the slot is free when the handler has really ended.
    this.#decide(held, timedOut(held.context));
    held.context.cancel("timeout");
  }

  #outcomeOfCancelled(held: Held): Outcome | undefined {
    switch (held.context.cancelReason) {
      case "cancelled":
        return CANCELLED;
      case "shutdown":
        return released(true);
      case "timeout":
        return timedOut(held.context);
      case "lease_lost":
      case undefined:
        // Nothing to report: the attempt is no longer ours.
        return undefined;
    }
  }

  /** The first outcome counts. */
  #decide(held: Held, outcome: Outcome): void {
    if (held.outcome) return;
    held.outcome = outcome;
    this.#outcomes.push(held);
    this.#reports.ring();
    this.#progress.ring();
  }

  #forget(held: Held): void {
    this.#held.delete(held.job.lease);
    this.#progress.ring();
  }

  // --- Extend -------------------------------------------------------------------------------------------------------

  async #renewLoop(): Promise<void> {
    const { renewEvery, log } = this.settings;
    const backoff = new Backoff(100, Math.min(1000, renewEvery));
    let delay = renewEvery;
    for (;;) {
      await sleep(delay, this.#end.signal);
      if (this.#end.signal.aborted) return;
      delay = renewEvery;
      try {
        await this.#renew();
        backoff.reset();
      } catch (error) {
        log(isTemporary(error) ? "warn" : "error", `leases could not be extended: ${String(error)}`);
        if (isTemporary(error)) delay = backoff.next();
      }
    }
  }

  async #renew(): Promise<void> {
    const held = [...this.#held.values()].filter((one) => one.context.cancelReason !== "lease_lost");
    for (let first = 0; first < held.length; first += MAX_ITEMS) {
      const part = held.slice(first, first + MAX_ITEMS);
      const more = { leaseMs: this.settings.lease };
      const answers = await this.#answers("extend", part.map(item), this.settings.lease, more);
      for (const [i, one] of part.entries()) {
        const answer = answers[i];
        // What was reported meanwhile is answered `stale`, rightly.
        if (answer !== "ok" && this.#held.has(one.job.lease) && this.#running.has(one)) {
          this.#stopAttempt(one, answer === "cancel" ? "cancelled" : "lease_lost");
        }
      }
    }
  }

  #stopAttempt(held: Held, reason: CancelReason): void {
    if (!held.context.cancel(reason)) return;
    if (reason === "lease_lost") this.stats.leasesLost += 1;
    const { id, kind, attempt } = held.job;
    const what = reason === "lease_lost" ? `attempt ${attempt} lost its lease` : "cancel was requested";
    this.settings.log(reason === "lease_lost" ? "warn" : "info", `job ${id} ${kind}: ${what}`);
  }

  // --- Report -------------------------------------------------------------------------------------------------------

  async #reportLoop(): Promise<void> {
    const backoff = new Backoff(100, 1000);
    while (!this.#end.signal.aborted) {
      if (this.#outcomes.length === 0) await this.#reports.rung();
      const ready = this.#outcomes;
      this.#outcomes = [];
      for (const batch of batches(ready)) await this.#reportUntilAnswered(batch, backoff);
    }
  }

  async #reportUntilAnswered(batch: Held[], backoff: Backoff): Promise<void> {
    while (!this.#end.signal.aborted) {
      try {
        await this.#report(batch);
        backoff.reset();
        return;
      } catch (error) {
        this.settings.log("warn", `${batch.length} outcomes could not be reported: ${String(error)}`);
        await sleep(backoff.next(error instanceof ApiError ? error.retryAfter : undefined), this.#end.signal);
      }
    }
  }

  async #report(batch: Held[]): Promise<void> {
    const path = batch[0]?.outcome?.succeeded ? "complete" : "fail";
    const items = batch.map((one) => ({ ...item(one), ...one.outcome?.fields }));
    let answers: string[];
    try {
      answers = await this.#answers(path, items, 30_000);
    } catch (error) {
      if (isTemporary(error) || !(error instanceof ApiError)) throw error;
      await this.#reportOneByOne(batch, error);
      return;
    }
    for (const [i, held] of batch.entries()) this.#reported(held, answers[i]);
  }

  /** One outcome that the server refuses must not hold up the others. */
  async #reportOneByOne(batch: Held[], error: ApiError): Promise<void> {
    const [held] = batch;
    if (batch.length > 1 || !held?.outcome) {
      for (const one of batch) if (this.#held.has(one.job.lease)) await this.#report([one]);
      return;
    }
    const { fields, succeeded } = held.outcome;
    if (error instanceof InvalidRequest && "trace" in fields) {
      this.settings.log("warn", "the server does not accept stack traces; none are sent from now on");
      this.#sendTraces = false;
      const { trace: _, ...others } = fields;
      held.outcome = { succeeded, fields: others };
      await this.#report([held]);
    } else if (error instanceof InvalidRequest && fields.class !== "OutcomeRefused") {
      held.outcome = refused(held.outcome, error.message);
      await this.#report([held]);
    } else {
      this.settings.log("error", `job ${held.job.id} ${held.job.kind}: its outcome cannot be reported: ${error}`);
      this.#forget(held);
    }
  }

  #reported(held: Held, answer: string | undefined): void {
    this.#forget(held);
    if (answer !== "ok") {
      this.stats.refused += 1;
      const { id, kind, attempt } = held.job;
      this.settings.log("warn", `job ${id} ${kind}: the outcome of attempt ${attempt} was refused, its lease was lost`);
    } else if (held.outcome?.succeeded) this.stats.succeeded += 1;
    else if (held.outcome?.fields.release) this.stats.released += 1;
    else this.stats.failed += 1;
  }

  /** `ok`, `stale` or `cancel` for each item, in order. */
  async #answers(path: string, results: Item[], timeout: number, more: object = {}): Promise<string[]> {
    const body = { worker: this.settings.name, results, ...more };
    const call = { method: "POST", path: `${API}/leases/${path}`, body, repeatable: true };
    const answer = await this.http.once<{ results: { result: string }[] }>(call, timeout);
    return answer.value.results.map((one) => one.result);
  }
}

function isAboutKinds(error: unknown): boolean {
  return error instanceof InvalidRequest && `${error.message} ${JSON.stringify(error.faults)}`.includes("kinds");
}

function item({ job }: Held): Item {
  return { id: job.id, attempt: job.attempt, lease: job.lease };
}

/** Outcomes in batches that one request can carry: successes and failures apart. */
function* batches(all: Held[]): Generator<Held[], void, undefined> {
  for (const succeeded of [true, false]) {
    let batch: Held[] = [];
    let size = 0;
    for (const held of all) {
      if (held.outcome?.succeeded !== succeeded) continue;
      const { fields } = held.outcome;
      const weight = Object.keys(fields).length === 0 ? 0 : JSON.stringify(fields).length;
      if (batch.length > 0 && (batch.length === MAX_ITEMS || size + weight > MAX_LETTERS)) {
        yield batch;
        batch = [];
        size = 0;
      }
      batch.push(held);
      size += weight;
    }
    if (batch.length > 0) yield batch;
  }
}

/** Wakes who waits. A ring while nobody waits is kept for the next who does. */
class Bell {
  #isRung = false;
  #wake: (() => void)[] = [];

  ring(): void {
    this.#isRung = true;
    const wake = this.#wake;
    this.#wake = [];
    for (const one of wake) one();
  }

  async rung(): Promise<void> {
    if (!this.#isRung) await new Promise<void>((resolve) => this.#wake.push(resolve));
    this.#isRung = false;
  }
}
