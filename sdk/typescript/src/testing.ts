/**
 * Test mode: jobs and handlers in this process, without a server and without waiting.
 *
 * The client is the real one; what it calls is held in memory. Time stands still except in `runAll` and `advance`.
 * Retries wait 1m, 2m, 4m, … whatever the policy; how often a job is retried and what is given up on follow its policy.
 */
import { Client } from "./client.js";
import { Context } from "./context.js";
import { type Duration, milliseconds } from "./duration.js";
import { API } from "./http.js";
import { failed, type Outcome, runHandler, timedOut, unknownKind } from "./outcome.js";
import type { Attempt, Job, LeasedJob, NewJob, Policy } from "./types.js";
import type { Worker } from "./worker.js";

const GIVE_UP_ON = ["ValidationError", "NotFoundError", "UnauthorizedError", "ForbiddenError", "SyntaxError"];
const RETRIES: Record<string, number> = { once: 0, "low-latency": 2, "queue-worker": 4, financial: 5 };
const FINISHED = ["succeeded", "failed", "cancelled"];

interface Stored {
  job: Job & { http: unknown };
  retries: number;
  giveUpOn: readonly string[];
  traceparent: string | null;
  history: Attempt[];
}

/** A queue in memory, worked by a worker's handlers. */
export class InProcess {
  /** A client of this queue. */
  readonly client: Client;
  readonly #worker: Worker;
  readonly #jobs = new Map<number, Stored>();
  #now: number;

  constructor(worker: Worker, options: { now?: Date } = {}) {
    this.#worker = worker;
    this.#now = (options.now ?? new Date()).getTime();
    this.client = new Client({ url: "http://in-process.invalid", fetch: this.fetch });
  }

  /** The time of this queue. */
  get now(): Date {
    return new Date(this.#now);
  }

  /** Moves the time forward. Nothing runs by itself. */
  advance(by: Duration): void {
    this.#now += milliseconds(by);
  }

  /** Runs every job that is due now, one after the other. Returns how many attempts were made. */
  async runDue(): Promise<number> {
    let attempts = 0;
    for (let due = this.#next(this.#now); due; due = this.#next(this.#now)) {
      await this.#attempt(due);
      attempts += 1;
    }
    return attempts;
  }

  /**
   * Runs jobs until none waits, moving the time forward to later jobs and retries. Returns how many attempts were made;
   * throws after `limit` of them.
   */
  async runAll(options: { limit?: number } = {}): Promise<number> {
    const limit = options.limit ?? 1000;
    let attempts = 0;
    for (let next = this.#next(Number.POSITIVE_INFINITY); next; next = this.#next(Number.POSITIVE_INFINITY)) {
      if (attempts >= limit) throw new Error(`jobs still wait after ${limit} attempts`);
      this.#now = Math.max(this.#now, dueAt(next));
      await this.#attempt(next);
      attempts += 1;
    }
    return attempts;
  }

  /** Answers calls as the server would; for clients that take a `fetch`. */
  readonly fetch: typeof fetch = async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    const body = typeof init?.body === "string" ? JSON.parse(init.body) : {};
    return this.#answer(init?.method ?? "GET", url, body, new Headers(init?.headers).get("traceparent"));
  };

  // --- Running ------------------------------------------------------------------------------------------------------

  #next(until: number): Stored | undefined {
    let first: Stored | undefined;
    for (const one of this.#jobs.values()) {
      if (one.job.nextRunAt === null || one.job.http || dueAt(one) > until) continue;
      if (!first || dueAt(one) < dueAt(first)) first = one;
    }
    return first;
  }

  async #attempt(stored: Stored): Promise<void> {
    const { job } = stored;
    Object.assign(job, { state: "running", attempt: job.attempt + 1, nextRunAt: null });
    const leased: LeasedJob = {
      ...job,
      // A handler gets values as they come from JSON, and cannot change what is stored.
      payload: JSON.parse(JSON.stringify(job.payload ?? null)),
      idempotencyKey: job.idempotencyKey ?? `windlass-${job.id}`,
      lease: "",
      traceparent: stored.traceparent,
    };
    const handler = this.#worker.handlers.get(leased.kind);
    if (!handler) return this.#apply(stored, unknownKind(leased));
    const context = new Context(leased, leased.timeoutMs ?? handler.timeout);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<Outcome>((resolve) => {
      if (context.timeout === undefined) return;
      timer = setTimeout(() => {
        context.cancel("timeout");
        resolve(timedOut(context));
      }, context.timeout);
    });
    const outcome = await Promise.race([runHandler(handler.run, leased, context, false), late]);
    clearTimeout(timer);
    this.#apply(stored, outcome ?? failed("AttemptCancelled", "the handler stopped by itself"));
  }

  #apply(stored: Stored, outcome: Outcome): void {
    const { job } = stored;
    const fields = outcome.fields as { [name: string]: string | undefined };
    const entry: Attempt = {
      attempt: job.attempt,
      retryCount: job.failures,
      label: job.failures === 0 ? "Initial" : `Retry #${job.failures}`,
      status: outcome.succeeded ? "SUCCESS" : "snooze" in fields ? "SNOOZED" : "FAILED",
      executionTime: this.now.toISOString(),
      durationMs: 0,
      errorClass: fields.class ?? null,
      error: fields.message ?? null,
      note: fields.note ?? null,
      worker: this.#worker.name,
      nextRunAt: null,
      delayMs: null,
      why: "",
    };
    Object.assign(job, { errorClass: entry.errorClass, error: entry.error });
    if (outcome.succeeded) this.#finish(job, "succeeded", { result: outcome.fields.result ?? null });
    else if (fields.cancel || job.cancelRequested) this.#finish(job, "cancelled");
    else if (fields.snooze !== undefined) this.#wait(job, "queued", milliseconds(fields.snooze));
    else {
      job.failures += 1;
      this.#fail(stored, fields);
    }
    entry.nextRunAt = job.nextRunAt;
    stored.history.push(entry);
  }

  #fail({ job, retries, giveUpOn }: Stored, fields: { [name: string]: string | undefined }): void {
    if (job.delivery === "AT_MOST_ONCE") this.#finish(job, "failed", { reason: "at_most_once" });
    else if (fields.permanent || giveUpOn.includes(fields.class ?? "")) {
      this.#finish(job, "failed", { reason: "permanent" });
    } else if (job.failures > retries) this.#finish(job, "failed", { reason: "exhausted" });
    else if (fields.retryIn !== undefined) this.#wait(job, "retrying", milliseconds(fields.retryIn));
    else {
      const delay = Math.min(3_600_000, 60_000 * 2 ** (job.failures - 1));
      this.#wait(job, "retrying", Math.max(delay, milliseconds(fields.retryAfter ?? 0)));
    }
  }

  #finish(job: Job, state: string, more: object = {}): void {
    Object.assign(job, { state, finishedAt: this.now.toISOString(), nextRunAt: null, ...more });
  }

  #wait(job: Job, state: string, ms: number): void {
    const due = new Date(this.#now + ms).toISOString();
    Object.assign(job, { state, nextRunAt: due, runAt: due });
  }

  // --- Calls --------------------------------------------------------------------------------------------------------

  #answer(method: string, url: URL, body: NewJob & { jobs?: NewJob[] }, traceparent: string | null): Response {
    const [first, second, ...rest] = url.pathname.replace(`${API}/`, "").split("/");
    const call = `${method} ${url.pathname}`;
    if (first !== "jobs") return problem(501, "not-in-test-mode", `test mode does not answer ${call}`);
    if (second === undefined)
      return method === "POST" ? this.#enqueue(body, traceparent) : this.#list(url.searchParams);
    if (second === "batch") {
      const ids = (body.jobs ?? []).map((job) => this.#store(job, traceparent).job.id);
      return Response.json({ created: ids.length, results: ids.map((id) => ({ result: "created", id })) });
    }
    const stored = this.#jobs.get(Number(second));
    if (!stored) return problem(404, "not-found", `there is no job ${second}`);
    return this.#one([method, ...rest].join(" "), stored) ?? problem(501, "not-in-test-mode", call);
  }

  #one(call: string, stored: Stored): Response | undefined {
    const { job } = stored;
    switch (call) {
      case "GET":
        return Response.json(job);
      case "GET history":
        return Response.json({ items: stored.history, next: null });
      case "DELETE":
        if (FINISHED.includes(job.state)) return problem(409, "conflict", `job ${job.id} is ${job.state} already`);
        if (job.state === "running") job.cancelRequested = true;
        else this.#finish(job, "cancelled");
        return Response.json(job, { status: job.state === "running" ? 202 : 200 });
      case "POST retry":
        if (job.state === "running") return problem(409, "conflict", `job ${job.id} is running`);
        Object.assign(job, { failures: 0, replays: job.replays + 1, finishedAt: null, reason: null });
        this.#wait(job, "queued", 0);
        return Response.json(job);
      default:
        return undefined;
    }
  }

  #list(query: URLSearchParams): Response {
    const matches = ({ job }: Stored) =>
      (["state", "queue", "kind"] as const).every((name) => [null, job[name]].includes(query.get(name)));
    const jobs = [...this.#jobs.values()].reverse().filter(matches);
    const items = jobs.slice(0, Number(query.get("limit") ?? 100)).map((one) => one.job);
    return Response.json({ items, next: null });
  }

  #enqueue(body: NewJob, traceparent: string | null): Response {
    for (const { job } of this.#jobs.values()) {
      if (body.idempotencyKey === undefined || job.idempotencyKey !== body.idempotencyKey) continue;
      const isSame =
        job.kind === (body.kind ?? "http") && JSON.stringify(job.payload) === JSON.stringify(body.payload ?? null);
      return isSame ? Response.json(job) : problem(409, "key-conflict", "the idempotency key is another job's");
    }
    return Response.json(this.#store(body, traceparent).job, { status: 201 });
  }

  #store(body: NewJob, traceparent: string | null): Stored {
    const { retries, giveUpOn } = policy(body.retry);
    const runAt = body.runAt ? new Date(body.runAt) : new Date(this.#now + milliseconds(body.delay ?? 0));
    const job = {
      id: this.#jobs.size + 1,
      state: "queued" as const,
      tenantId: body.tenantId ?? "default",
      queue: body.queue ?? "default",
      kind: body.kind ?? "http",
      payload: body.payload ?? null,
      priority: String(body.priority ?? "normal"),
      delivery: body.delivery ?? "AT_LEAST_ONCE",
      attempt: 0,
      failures: 0,
      maxAttempts: retries + 1,
      replays: 0,
      runAt: runAt.toISOString(),
      nextRunAt: runAt.toISOString(),
      createdAt: this.now.toISOString(),
      finishedAt: null,
      startBy: null,
      retry: {},
      reason: null,
      errorClass: null,
      error: null,
      timeoutMs: body.timeout === undefined ? null : milliseconds(body.timeout),
      idempotencyKey: body.idempotencyKey ?? null,
      limitKey: body.limitKey ?? null,
      cancelRequested: false,
      result: null,
      scheduleId: null,
      parentId: null,
      http: body.http,
    };
    const stored: Stored = { job, retries, giveUpOn, traceparent, history: [] };
    this.#jobs.set(job.id, stored);
    return stored;
  }
}

function dueAt(stored: Stored): number {
  return new Date(stored.job.nextRunAt ?? 0).getTime();
}

/** How often to retry, and what to give up on. */
function policy(retry: Policy | undefined): { retries: number; giveUpOn: readonly string[] } {
  if (typeof retry === "string") {
    const [name = "", settings = ""] = retry.split(":", 2);
    const fields = Object.fromEntries(settings.split(",").map((one) => one.split("=", 2)));
    const preset = RETRIES[name] ?? 3;
    const retries = fields.attempts === undefined ? Number(fields.retries ?? preset) : Number(fields.attempts) - 1;
    return { retries, giveUpOn: GIVE_UP_ON };
  }
  const given = (retry ?? {}) as { policy?: string; maxRetries?: number; maxAttempts?: number; giveUpOn?: string[] };
  const base = given.policy === undefined ? 3 : policy(given.policy).retries;
  const attempts = given.maxAttempts === undefined ? base : given.maxAttempts - 1;
  return { retries: given.maxRetries ?? attempts, giveUpOn: given.giveUpOn ?? GIVE_UP_ON };
}

function problem(status: number, kind: string, detail: string): Response {
  return Response.json({ type: `urn:windlass:problem:${kind}`, title: kind, status, detail }, { status });
}
