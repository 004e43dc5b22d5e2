import type { Context } from "./context.js";
import { CancelJob, Permanent, RetryAfter, RetryIn, Snooze } from "./errors.js";
import type { LeasedJob } from "./types.js";

const MAX_RESULT = 64 * 1024;
const MAX_TRACE = 32 * 1024;
const MAX_MESSAGE = 8 * 1024;

/** The end of an attempt. `fields` go to `/leases/complete` if it succeeded, else to `/leases/fail`. */
export interface Outcome {
  succeeded: boolean;
  /** Fields of the item, apart from id, attempt and lease. */
  fields: Record<string, unknown>;
}

/** A function that runs jobs of one kind. What it returns (JSON, up to 64 KiB) is the job's result. */
export type Handler<P = unknown> = (job: LeasedJob<P>, ctx: Context) => unknown;

/** Runs a handler. Undefined means: it stopped because it was cancelled, the context says why. */
export async function runHandler(
  handler: Handler,
  job: LeasedJob,
  context: Context,
  withTrace: boolean,
): Promise<Outcome | undefined> {
  try {
    return success(await handler(job, context), context.noted);
  } catch (error) {
    if (context.isCancellation(error)) return undefined;
    try {
      return ofError(error, context.noted, withTrace);
    } catch {
      // Such as an object that cannot be made text.
      return failed("Error", "what the handler threw could not be read");
    }
  }
}

/** A failure that goes through the job's policy. */
export function failed(errorClass: string, message: string, more: Record<string, unknown> = {}): Outcome {
  return { succeeded: false, fields: { ...more, class: errorClass, message: message.slice(0, MAX_MESSAGE) } };
}

/** The worker stops and gives the job back. */
export function released(started: boolean): Outcome {
  return { succeeded: false, fields: { release: true, started } };
}

/** What is reported instead of an outcome that the server refuses. Work that succeeded must not be repeated. */
export function refused(outcome: Outcome, why: string): Outcome {
  const before = "class" in outcome.fields ? ` (${outcome.fields.class}: ${outcome.fields.message})` : "";
  const message = `the server refused the outcome: ${why}${before}`;
  return failed("OutcomeRefused", message, { permanent: outcome.succeeded });
}

export const CANCELLED: Outcome = { succeeded: false, fields: { cancel: true } };

/** Retried by the policy: a rolling deploy may bring the handler. */
export function unknownKind(job: LeasedJob): Outcome {
  return failed("UnknownKind", `no handler of this worker knows the kind ${job.kind}`);
}

/** The failure of an attempt that took too long. */
export function timedOut(context: Context): Outcome {
  return failed("Timeout", `the attempt took longer than ${context.timeout} ms`);
}

/** A handler returned. A result that cannot be stored is a failure that no retry would cure. */
function success(result: unknown, note: string | undefined): Outcome {
  const fields: Record<string, unknown> = note === undefined ? {} : { note };
  if (result === undefined || result === null) return { succeeded: true, fields };
  let text: string | undefined;
  try {
    text = JSON.stringify(result);
  } catch (error) {
    return failed("BadResult", `the handler's result is not JSON: ${String(error)}`, { permanent: true });
  }
  if (text === undefined) return failed("BadResult", "the handler's result is not JSON", { permanent: true });
  const size = text.length > MAX_RESULT / 3 ? new TextEncoder().encode(text).length : text.length;
  if (size > MAX_RESULT) {
    const message = `the handler's result has ${size} bytes; ${MAX_RESULT} are allowed`;
    return failed("BadResult", message, { permanent: true });
  }
  return { succeeded: true, fields: { ...fields, result } };
}

/** What a handler's error means. */
function ofError(error: unknown, note: string | undefined, withTrace: boolean): Outcome {
  const fields: Record<string, unknown> = note === undefined ? {} : { note };
  if (error instanceof Snooze) {
    if (error.note !== undefined) fields.note = error.note;
    return { succeeded: false, fields: { ...fields, snooze: error.delay } };
  }
  if (error instanceof CancelJob) return { succeeded: false, fields: { ...fields, cancel: true } };
  if (error instanceof Permanent) fields.permanent = true;
  if (error instanceof RetryAfter) fields.retryAfter = error.delay;
  if (error instanceof RetryIn) fields.retryIn = error.delay;
  if (withTrace && error instanceof Error && error.stack) fields.trace = error.stack.slice(0, MAX_TRACE / 4);
  return failed(className(error), error instanceof Error ? error.message : String(error), fields);
}

/** An error's name; of classes that set none, the class's. */
function className(error: unknown): string {
  if (!(error instanceof Error)) return "Error";
  return error.name && error.name !== "Error" ? error.name : error.constructor.name || "Error";
}
