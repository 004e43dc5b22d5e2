/** Client and worker for Windlass, a durable job queue, scheduler and webhook dispatcher. */
export {
  Client,
  type ClientOptions,
  type Policies,
  type Schedules,
  type TraceOptions,
  type WaitOptions,
} from "./client.js";
export type { Context } from "./context.js";
export type { Duration } from "./duration.js";
export type { Stats } from "./engine.js";
export {
  ApiError,
  AttemptCancelled,
  CancelJob,
  type CancelReason,
  Conflict,
  ConnectionLost,
  type Fault,
  Forbidden,
  HandlerError,
  InvalidRequest,
  JobNotSucceeded,
  NotFound,
  NotSent,
  Permanent,
  RetryAfter,
  RetryIn,
  Snooze,
  TooManyRequests,
  Unauthorized,
  Unavailable,
  WaitTimeout,
  WebhookError,
  WindlassError,
} from "./errors.js";
export type { Connection } from "./http.js";
export type { DeadLetters, Holds, Kinds, Queues } from "./operations.js";
export type { Handler } from "./outcome.js";
export type * from "./types.js";
export { signWebhook, type VerifyOptions, verifyWebhook, type WebhookHeaders } from "./webhooks.js";
export { type HandlerOptions, Worker, type WorkerOptions } from "./worker.js";
