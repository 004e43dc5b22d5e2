import { type Duration, toApi } from "./duration.js";
import type { Job } from "./types.js";

/** Base of every error this package throws. */
export class WindlassError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The server could not be reached. Nothing was changed. */
export class NotSent extends WindlassError {}

/** The connection was lost, or timed out, before the answer arrived. Whether the request was carried out is not known. */
export class ConnectionLost extends WindlassError {}

/** One wrong field of a request. */
export interface Fault {
  pointer: string;
  detail: string;
}

/** Problem details (RFC 9457). */
export interface Problem {
  type?: string;
  title?: string;
  detail?: string;
  requestId?: string;
  errors?: Fault[];
}

/** The server answered with an error. */
export class ApiError extends WindlassError {
  /** Stable name of the kind of error, such as `urn:windlass:problem:invalid`. */
  readonly type: string;
  readonly detail: string;
  readonly requestId: string | undefined;
  /** The wrong fields. */
  readonly faults: readonly Fault[];

  constructor(
    readonly status: number,
    problem: Problem,
    /** Milliseconds the server asked to wait, if it did. */
    readonly retryAfter?: number,
  ) {
    const title = problem.title ?? `HTTP ${status}`;
    super(problem.detail ? `${status} ${title}: ${problem.detail}` : `${status} ${title}`);
    this.type = problem.type ?? "about:blank";
    this.detail = problem.detail ?? "";
    this.requestId = problem.requestId;
    this.faults = problem.errors ?? [];
  }
}

/** 400, 413, 415, 422: the request has wrong fields; `faults` names them. */
export class InvalidRequest extends ApiError {}
/** 401: a valid token is needed. */
export class Unauthorized extends ApiError {}
/** 403: the token does not allow this. */
export class Forbidden extends ApiError {}
/** 404. */
export class NotFound extends ApiError {}
/** 409: not in the present state, or the idempotency key is another job's. */
export class Conflict extends ApiError {}
/** 429: try again later. */
export class TooManyRequests extends ApiError {}
/** 5xx: the server cannot serve the request now. */
export class Unavailable extends ApiError {
  /** True if the request may have been carried out. */
  get isOutcomeUnknown(): boolean {
    return !this.type.endsWith(":unavailable") && !this.type.endsWith(":draining");
  }
}

const BY_STATUS: Record<number, typeof ApiError> = {
  400: InvalidRequest,
  401: Unauthorized,
  403: Forbidden,
  404: NotFound,
  409: Conflict,
  413: InvalidRequest,
  415: InvalidRequest,
  422: InvalidRequest,
  429: TooManyRequests,
};

/** The error of a status. */
export function apiError(status: number, problem: Problem, retryAfter?: number): ApiError {
  const Kind = BY_STATUS[status] ?? (status >= 500 ? Unavailable : ApiError);
  return new Kind(status, problem, retryAfter);
}

/** `result` was asked for, and the job ended without one. */
export class JobNotSucceeded extends WindlassError {
  constructor(readonly job: Job) {
    const why = job.reason ? ` (${job.reason})` : "";
    const error = job.errorClass ? `: ${job.errorClass}: ${job.error ?? ""}` : "";
    super(`job ${job.id} ${job.state}${why}${error}`);
  }
}

/** The job was not finished in time. It goes on. */
export class WaitTimeout extends WindlassError {}

/** A received webhook is not genuine, or too old. */
export class WebhookError extends WindlassError {}

/** Base of failures that say what happens next. The class on record is the error's name. */
export class HandlerError extends Error {
  constructor(message = "", options?: ErrorOptions & { name?: string }) {
    super(message, options);
    this.name = options?.name ?? new.target.name;
  }
}

/** The job fails now and is never retried. */
export class Permanent extends HandlerError {}

/** The attempt failed; the next one is not before `delay`. */
export class RetryAfter extends HandlerError {
  readonly delay: Duration;

  constructor(delay: Duration, message?: string, options?: ErrorOptions & { name?: string }) {
    super(message, options);
    this.delay = toApi(delay);
  }
}

/** The attempt failed; the next one is in exactly `delay`, whatever the policy says. */
export class RetryIn extends HandlerError {
  readonly delay: Duration;

  constructor(delay: Duration, message?: string, options?: ErrorOptions & { name?: string }) {
    super(message, options);
    this.delay = toApi(delay);
  }
}

/** Not now: try again after `delay`. Counts as no failure. */
export class Snooze extends Error {
  override readonly name = "Snooze";
  readonly delay: Duration;

  constructor(
    delay: Duration,
    readonly note?: string,
  ) {
    super(`snoozed for ${delay}`);
    this.delay = toApi(delay);
  }
}

/** End the job as cancelled. */
export class CancelJob extends Error {
  override readonly name = "CancelJob";
}

/**
 * Why an attempt must stop: the job was cancelled, another worker may have it by now, it took too long, or the worker
 * stops.
 */
export type CancelReason = "cancelled" | "lease_lost" | "timeout" | "shutdown";

/** The reason of a context's `signal` once the attempt must stop. */
export class AttemptCancelled extends Error {
  override readonly name = "AttemptCancelled";
  constructor(readonly reason: CancelReason) {
    super(`the attempt must stop: ${reason}`);
  }
}
