import { AttemptCancelled, type CancelReason } from "./errors.js";
import type { LeasedJob } from "./types.js";

/** What a handler knows about its attempt, apart from the job. */
export class Context {
  readonly #abort = new AbortController();
  readonly #job: LeasedJob;
  #note: string | undefined;
  #reason: CancelReason | undefined;
  /** When the attempt fails with class `Timeout`. */
  readonly deadline: Date | undefined;

  /** @internal */
  constructor(
    job: LeasedJob,
    /** The longest the attempt may take, in milliseconds. */
    readonly timeout?: number | undefined,
  ) {
    this.#job = job;
    this.deadline = timeout === undefined ? undefined : new Date(Date.now() + timeout);
  }

  /** The number of this attempt, from 1. */
  get attempt(): number {
    return this.#job.attempt;
  }

  /** The same for every attempt of the job: hand it to services that take one. */
  get idempotencyKey(): string {
    return this.#job.idempotencyKey;
  }

  /** True if a failure now uses up the job's retries. */
  get isLastAttempt(): boolean {
    return this.#job.failures + 1 >= this.#job.maxAttempts;
  }

  /** Aborted once the attempt must stop; hand it to `fetch` and the like. Its reason is an `AttemptCancelled`. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Why the attempt must stop, if it must. */
  get cancelReason(): CancelReason | undefined {
    return this.#reason;
  }

  /** Milliseconds until the deadline, or undefined without one. */
  remaining(): number | undefined {
    return this.deadline && Math.max(0, this.deadline.getTime() - Date.now());
  }

  /** Leaves a text with the attempt in the job's history. The last one counts. */
  note(text: string): void {
    this.#note = text;
  }

  /** @internal */
  get noted(): string | undefined {
    return this.#note;
  }

  /** @internal Returns whether this is the first reason. */
  cancel(reason: CancelReason): boolean {
    if (this.#reason !== undefined) return false;
    this.#reason = reason;
    this.#abort.abort(new AttemptCancelled(reason));
    return true;
  }

  /** @internal Whether a handler threw this because it was cancelled. */
  isCancellation(error: unknown): boolean {
    if (this.#reason === undefined) return false;
    if (error instanceof AttemptCancelled || error === this.signal.reason) return true;
    return error instanceof Error && (error.name === "AbortError" || error.cause === this.signal.reason);
  }
}
