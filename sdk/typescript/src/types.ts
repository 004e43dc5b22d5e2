import type { Duration } from "./duration.js";

export type State = "queued" | "running" | "retrying" | "succeeded" | "failed" | "cancelled";
export type Priority = "lowest" | "low" | "normal" | "high" | "highest" | number;
export type DeliveryMode = "AT_LEAST_ONCE" | "AT_MOST_ONCE";
/** A policy's name, a policy line, or a policy object. */
export type Policy = string | Record<string, unknown>;
/** A time: a `Date`, or RFC 3339 text. */
export type Time = Date | string;

/** A call to a URL, made by Windlass itself. */
export interface HttpCall {
  url: string;
  method?: string;
  headers?: Record<string, string>;
}

/** Whom to notify when a job finishes. */
export interface Webhook {
  url: string;
  events?: ("succeeded" | "failed" | "cancelled")[];
  secret?: string;
  policy?: Policy;
}

/** Optional fields of a new job. */
export interface JobOptions {
  queue?: string;
  tenantId?: string;
  priority?: Priority;
  runAt?: Time;
  delay?: Duration;
  retry?: Policy;
  delivery?: DeliveryMode;
  timeout?: Duration;
  startBy?: Time;
  idempotencyKey?: string;
  idempotencyWindow?: Duration;
  /** What per-key limits, holds and breakers apply to. */
  limitKey?: string;
  webhook?: Webhook;
  http?: HttpCall;
}

/** A job to be stored. Give `kind`, or `http` for a call to a URL. */
export interface NewJob<P = unknown> extends JobOptions {
  kind?: string;
  payload?: P;
}

/** A stored job. Times are RFC 3339 text. */
export interface Job<P = unknown, R = unknown> {
  id: number;
  state: State;
  tenantId: string;
  queue: string;
  kind: string;
  payload: P;
  priority: string;
  delivery: string;
  attempt: number;
  failures: number;
  maxAttempts: number;
  replays: number;
  runAt: string;
  nextRunAt: string | null;
  createdAt: string;
  finishedAt: string | null;
  startBy: string | null;
  retry: Record<string, unknown>;
  reason: string | null;
  errorClass: string | null;
  error: string | null;
  timeoutMs: number | null;
  idempotencyKey: string | null;
  /** Absent if the job has none. */
  limitKey?: string | null;
  cancelRequested: boolean;
  result: R | null;
  scheduleId: number | null;
  parentId: number | null;
}

/** An enqueued job. */
export interface Enqueued<P = unknown> extends Job<P> {
  /** True if the job was found under the same idempotency key. */
  existing: boolean;
}

/** What became of one job of `enqueueMany`. */
export interface BatchItem {
  result: "created" | "existing" | "conflict" | "refused" | "not_stored";
  id?: number | null;
  detail?: string | null;
}

/** One line of a job's history. */
export interface Attempt {
  attempt: number;
  retryCount: number;
  label: string;
  status: "SUCCESS" | "FAILED" | "SNOOZED" | "RELEASED";
  executionTime: string;
  durationMs: number;
  errorClass: string | null;
  error: string | null;
  note: string | null;
  worker: string;
  nextRunAt: string | null;
  delayMs: number | null;
  why: string;
  jobId?: number | null;
}

/** A page of a list. `next` is the cursor of the following page, or null on the last one. */
export interface Page<T> {
  items: T[];
  next: string | null;
}

/** Which jobs to list. */
export interface JobFilter {
  state?: string;
  queue?: string;
  kind?: string;
  tenant?: string;
  class?: string;
  schedule?: number;
  parent?: number;
  since?: Time;
  limit?: number;
  cursor?: string;
  order?: "asc" | "desc";
}

/** A change to a waiting job. */
export interface JobChange {
  priority?: Priority;
  runAt?: Time;
  delay?: Duration;
}

/** When a schedule fires. Give `cron` or `every`. */
export interface NewSchedule {
  cron?: string;
  every?: Duration;
  timezone?: string;
  overlap?: "skip" | "allow";
  missed?: "one" | "skip";
  recurring?: boolean;
  paused?: boolean;
  /** The job each firing enqueues. */
  job: NewJob;
}

/** A rule that enqueues jobs. */
export interface Schedule {
  id: number;
  tenantId: string;
  cron: string | null;
  every: string | null;
  timezone: string;
  recurring: boolean;
  overlap: string;
  missed: string;
  paused: boolean;
  nextRunAt: string | null;
  nextFiringAt: string | null;
  lastFiringAt: string | null;
  lastJobId: number | null;
  createdAt: string;
  job: Record<string, unknown>;
}

/** One retry of a previewed policy: the delay before jitter, the jitter window, the running sum. */
export interface Delay {
  retry: number;
  delayMs: number;
  minMs: number;
  maxMs: number;
  totalMs: number;
}

/** What a policy would do. */
export interface PolicyPreview {
  policy: Record<string, unknown>;
  delays: Delay[];
  explained: string;
}

/** A policy with a name: a preset, or the operator's own. */
export interface NamedPolicy {
  name: string;
  preset: boolean;
  line: string;
  explained: string;
  policy: Record<string, unknown>;
  purpose: string | null;
}

/** A job as its handler receives it. */
export interface LeasedJob<P = unknown> {
  id: number;
  attempt: number;
  lease: string;
  tenantId: string;
  queue: string;
  kind: string;
  payload: P;
  failures: number;
  maxAttempts: number;
  delivery: string;
  priority: string;
  /** The same for every attempt. */
  idempotencyKey: string;
  timeoutMs: number | null;
  createdAt: string;
  runAt: string;
  scheduleId: number | null;
  traceparent: string | null;
}

/** Why a job is where it is. */
export interface Why {
  id: number;
  state: State;
  /** What it waits for; null if nothing holds it back. */
  waitingFor: string | null;
  until: string | null;
  /** What is the case, and what follows from it. */
  sentences: string[];
}

/** An error rule; the first of a list that matches a failure decides. */
export interface Rule {
  match: { class?: string; status?: string; message?: string };
  then: "retry" | "giveUp" | "snooze" | "hold" | "discard";
  for?: Duration;
  policy?: string;
}

/** How many attempts at once, and how many starts per time (`"100/1m"`). */
export interface Limit {
  concurrency?: number;
  rate?: string;
  burst?: number;
}

/** Limits of a queue and of each of its limit keys. */
export interface Limits extends Limit {
  perKey?: Limit;
  keyBy?: "limitKey" | "tenant" | "destination";
  across?: "tenant" | "all";
}

/** The settings of a queue. An omitted one returns to its default. */
export interface QueueSettings {
  policy?: Policy;
  retention?: { succeeded?: string; cancelled?: string; failed?: string };
  limits?: Limits;
  breaker?: "on" | "off" | Record<string, unknown>;
  retryBudget?: string | Record<string, unknown>;
  honorRetryAfter?: "key" | "job";
  maxHold?: Duration;
  rules?: Rule[];
}

/** A queue: what waits and runs in it, and its settings. */
export interface Queue {
  name: string;
  tenantId: string;
  paused: boolean;
  due: number;
  later: number;
  running: number;
  dead: number;
  oldestDueAt: string | null;
  /** Absent where not set. */
  limits?: Limits | null;
}

/** What to hold, and until when. Give `queue` or `key`, and `for` or `until`. */
export interface NewHold {
  queue?: string;
  /** Without a queue, the key is held in every queue. */
  key?: string;
  for?: Duration;
  until?: Time;
  reason?: string;
  tenantId?: string;
}

/** A queue or limit key of which nothing starts, or only a probe of its circuit breaker. */
export interface Hold {
  queue: string;
  key: string | null;
  tenantId: string;
  until: string | null;
  origin: string | null;
  reason: string | null;
  breaker: "closed" | "open" | "halfOpen" | "probing";
  breakerUntil: string | null;
  parked: number;
  inUse: number;
}

/** The policy and error rules of a kind. */
export interface KindSettings {
  policy?: Policy;
  rules?: Rule[];
}

/** Which dead letters: all that match every field given. */
export interface DeadLetterFilter {
  tenant?: string;
  queue?: string;
  kind?: string;
  class?: string;
  since?: Time;
  fingerprint?: string;
}

/** Dead letters to act on: by id, by a filter, or all of them. */
export type WhichDeadLetters = { ids: readonly number[] } | { filter: DeadLetterFilter } | { all: true };

/** Dead letters that failed in the same way. */
export interface DeadLetterGroup {
  fingerprint: string;
  tenantId: string;
  queue: string;
  kind: string;
  errorClass: string;
  message: string;
  count: number;
  firstSeen: string;
  lastSeen: string;
  exampleId: number;
}

/** What a replay or discard did. */
export interface BulkResult {
  done: number;
  /** True if the filter may match more: repeat the call. */
  more: boolean;
  /** For each id given: queued, already_live, running, discarded, not_dead or not_found. */
  results: { id: number; result: string }[];
  /** With `rate`: when the last replayed job is due. */
  lastDueAt: string | null;
}
