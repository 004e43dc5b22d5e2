import { Backoff, sleep } from "./backoff.js";
import { duration, get, post, type Send, time } from "./calls.js";
import { type Duration, milliseconds } from "./duration.js";
import { JobNotSucceeded, WaitTimeout } from "./errors.js";
import { API, type Call, type Connection, Http } from "./http.js";
import { DeadLetters, Holds, Kinds, Queues } from "./operations.js";
import type {
  Attempt,
  BatchItem,
  Enqueued,
  Job,
  JobChange,
  JobFilter,
  JobOptions,
  NamedPolicy,
  NewJob,
  NewSchedule,
  Page,
  Policy,
  PolicyPreview,
  Schedule,
  Why,
} from "./types.js";

export interface ClientOptions extends Connection {
  /** The longest one request may take; 30 s. */
  timeout?: Duration;
  /** How often a call is repeated where that is safe; 4 times. */
  retries?: number;
  /**
   * The current W3C trace context, for jobs that are stored without one. With OpenTelemetry:
   * `() => { const carrier = {}; propagation.inject(context.active(), carrier); return carrier.traceparent; }`.
   */
  traceparent?: () => string | undefined;
}

/** The trace that jobs belong to. */
export interface TraceOptions {
  /** The W3C trace context that the jobs take over; else what the client's `traceparent` returns. */
  traceparent?: string;
}

/** How to wait for a job. */
export interface WaitOptions {
  /** No limit if absent. */
  timeout?: Duration;
  signal?: AbortSignal;
}

const FINISHED = ["succeeded", "failed", "cancelled"];

/**
 * Calls a Windlass server.
 *
 * Calls that could not be carried out, and calls that are safe to repeat, are repeated with backoff and jitter. `enqueue`
 * is safe to repeat with an `idempotencyKey`.
 */
export class Client {
  readonly schedules: Schedules;
  readonly policies: Policies;
  readonly queues: Queues;
  readonly holds: Holds;
  readonly kinds: Kinds;
  readonly deadLetters: DeadLetters;
  readonly #http: Http;
  readonly #timeout: number;
  readonly #retries: number;
  readonly #traceparent: () => string | undefined;

  constructor(options: ClientOptions = {}) {
    this.#traceparent = options.traceparent ?? (() => undefined);
    this.#http = new Http(options);
    this.#timeout = milliseconds(options.timeout ?? 30_000);
    this.#retries = options.retries ?? 4;
    const send: Send = (call) => this.#send(call);
    this.schedules = new Schedules(send);
    this.policies = new Policies(send);
    this.queues = new Queues(send);
    this.holds = new Holds(send);
    this.kinds = new Kinds(send);
    this.deadLetters = new DeadLetters(send);
  }

  async #send<T>(call: Call, signal?: AbortSignal): Promise<T> {
    return (await this.#http.send<T>(call, this.#timeout, this.#retries, signal)).value;
  }

  /** Any call of the API that has no method here: `client.request("GET", "/api/v1/queues")`. */
  request<T = unknown>(method: string, path: string, body?: unknown): Promise<T> {
    return this.#send<T>({ method, path, body, repeatable: method === "GET" || method === "PUT" });
  }

  /** Stores one job. */
  enqueue<P>(kind: string, payload?: P, options?: JobOptions & TraceOptions): Promise<Enqueued<P>>;
  /** Stores one job: with `http` instead of `kind` it is a call to a URL. */
  enqueue<P>(job: NewJob<P> & TraceOptions): Promise<Enqueued<P>>;
  async enqueue<P>(
    first: string | (NewJob<P> & TraceOptions),
    payload?: P,
    options: JobOptions & TraceOptions = {},
  ): Promise<Enqueued<P>> {
    const given: NewJob & TraceOptions = typeof first === "string" ? { ...options, kind: first, payload } : first;
    const { traceparent = this.#traceparent(), ...job } = given;
    const call = { ...post("/jobs", jobToApi(job), job.idempotencyKey !== undefined), traceparent };
    const answer = await this.#http.send<Job<P>>(call, this.#timeout, this.#retries);
    return { ...answer.value, existing: answer.status === 200 };
  }

  /** Stores up to 10,000 jobs in one commit: all or none, or (`atomic: false`) each by itself. */
  async enqueueMany(jobs: readonly NewJob[], options: { atomic?: boolean } & TraceOptions = {}): Promise<BatchItem[]> {
    const body = { jobs: jobs.map(jobToApi), atomic: options.atomic ?? true };
    const repeatable = jobs.every((job) => job.idempotencyKey !== undefined);
    const { traceparent = this.#traceparent() } = options;
    const call = { ...post("/jobs/batch", body, repeatable), traceparent };
    return (await this.#send<{ results: BatchItem[] }>(call)).results;
  }

  /** Looks at a job. */
  get<P = unknown, R = unknown>(id: number): Promise<Job<P, R>> {
    return this.#send(get(`/jobs/${id}`));
  }

  /** One page of jobs, newest first. */
  list(filter: JobFilter = {}): Promise<Page<Job>> {
    return this.#send(get("/jobs", { ...filter, since: time(filter.since) }));
  }

  /** All jobs that match, page by page. */
  async *iterate(filter: JobFilter = {}): AsyncGenerator<Job, void, undefined> {
    let page = await this.list(filter);
    yield* page.items;
    while (page.next !== null) {
      page = await this.list({ ...filter, cursor: page.next });
      yield* page.items;
    }
  }

  /** The latest attempts, oldest first. */
  async history(id: number, options: { limit?: number } = {}): Promise<Attempt[]> {
    return (await this.#send<Page<Attempt>>(get(`/jobs/${id}/history`, options))).items;
  }

  /** Why a job is where it is: what it waits for and until when, who runs it, or why it gave up. */
  why(id: number): Promise<Why> {
    return this.#send(get(`/jobs/${id}/why`));
  }

  /** Cancels a job. A running one is asked to stop: `cancelRequested` is then true. */
  cancel(id: number): Promise<Job> {
    // Repeating it changes nothing more, but the second answer would be "cancelled already".
    return this.#send({ method: "DELETE", path: `${API}/jobs/${id}`, repeatable: false });
  }

  /** Sends a job again under its own id, with a fresh allowance of retries. */
  replay(id: number): Promise<Job> {
    return this.#send(post(`/jobs/${id}/retry`, undefined, false));
  }

  /** Changes the priority or time of a waiting job. */
  amend(id: number, change: JobChange): Promise<Job> {
    const body = { ...change, runAt: time(change.runAt), delay: duration(change.delay) };
    return this.#send({ method: "PATCH", path: `${API}/jobs/${id}`, body, repeatable: true });
  }

  /** Waits until the job is finished, however it ended. */
  async wait<P = unknown, R = unknown>(id: number, options: WaitOptions = {}): Promise<Job<P, R>> {
    const ends = options.timeout === undefined ? Number.POSITIVE_INFINITY : Date.now() + milliseconds(options.timeout);
    const backoff = new Backoff(50, 1000);
    for (;;) {
      options.signal?.throwIfAborted();
      const job = await this.#send<Job<P, R>>(get(`/jobs/${id}`), options.signal);
      if (FINISHED.includes(job.state)) return job;
      const left = ends - Date.now();
      if (left <= 0) throw new WaitTimeout(`job ${id} is ${job.state} after ${options.timeout}`);
      await sleep(Math.min(backoff.next(), left), options.signal);
    }
  }

  /** Waits for the job's result. Throws `JobNotSucceeded` if it failed or was cancelled. */
  async result<R = unknown>(id: number, options: WaitOptions = {}): Promise<R> {
    const job = await this.wait<unknown, R>(id, options);
    if (job.state !== "succeeded") throw new JobNotSucceeded(job);
    return job.result as R;
  }
}

/** Schedules: `client.schedules`. */
export class Schedules {
  readonly #send: Send;

  /** @internal */
  constructor(send: Send) {
    this.#send = send;
  }

  /** Makes a schedule: a cron line or an interval, and the job each firing enqueues. */
  create(schedule: NewSchedule): Promise<Schedule> {
    return this.#send(post("/schedules", scheduleToApi(schedule), false));
  }

  /** Looks at a schedule. */
  get(id: number): Promise<Schedule> {
    return this.#send(get(`/schedules/${id}`));
  }

  /** One page of schedules. */
  list(options: { limit?: number; cursor?: string } = {}): Promise<Page<Schedule>> {
    return this.#send(get("/schedules", options));
  }

  /** Changes a schedule. */
  change(id: number, change: Partial<NewSchedule>): Promise<Schedule> {
    return this.#send({
      method: "PATCH",
      path: `${API}/schedules/${id}`,
      body: scheduleToApi(change),
      repeatable: true,
    });
  }

  /** Removes a schedule. Its runs stay in history. */
  async remove(id: number): Promise<void> {
    await this.#send({ method: "DELETE", path: `${API}/schedules/${id}`, repeatable: false });
  }

  /** Pauses a schedule. */
  pause(id: number): Promise<Schedule> {
    return this.#send(post(`/schedules/${id}/pause`, undefined, true));
  }

  /** Resumes a schedule. Firings during the pause are not made up for. */
  resume(id: number): Promise<Schedule> {
    return this.#send(post(`/schedules/${id}/resume`, undefined, true));
  }

  /** Fires now, whatever the cron line says. Answers the run. */
  trigger(id: number): Promise<Job> {
    return this.#send(post(`/schedules/${id}/trigger`, undefined, false));
  }

  /** The next firings. */
  async preview(id: number, options: { count?: number } = {}): Promise<string[]> {
    return (await this.#send<{ firings: string[] }>(get(`/schedules/${id}/preview`, options))).firings;
  }

  /** The firings that a schedule would have. */
  async previewNew(when: { cron?: string; every?: Duration; timezone?: string; count?: number }): Promise<string[]> {
    const body = { ...when, every: duration(when.every) };
    return (await this.#send<{ firings: string[] }>(post("/schedules/preview", body, true))).firings;
  }
}

/** Retry policies: `client.policies`. */
export class Policies {
  readonly #send: Send;

  /** @internal */
  constructor(send: Send) {
    this.#send = send;
  }

  /** The delays of a policy, their jitter windows and totals. */
  preview(policy: Policy, options: { count?: number } = {}): Promise<PolicyPreview> {
    return this.#send(post("/policies/preview", { policy, ...options }, true));
  }

  /** Presets, and the operator's own. */
  async list(): Promise<NamedPolicy[]> {
    return (await this.#send<Page<NamedPolicy>>(get("/policies"))).items;
  }

  /** One policy. */
  get(name: string): Promise<NamedPolicy> {
    return this.#send(get(`/policies/${encodeURIComponent(name)}`));
  }
}

function jobToApi(job: NewJob): Record<string, unknown> {
  return {
    ...job,
    runAt: time(job.runAt),
    startBy: time(job.startBy),
    delay: duration(job.delay),
    timeout: duration(job.timeout),
    idempotencyWindow: duration(job.idempotencyWindow),
  };
}

function scheduleToApi(schedule: Partial<NewSchedule>): Record<string, unknown> {
  return { ...schedule, every: duration(schedule.every), job: schedule.job && jobToApi(schedule.job) };
}
