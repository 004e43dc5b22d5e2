/** Exponential delays with jitter. Half of each delay is fixed, so that a loop never spins. */
export class Backoff {
  #failures = 0;

  constructor(
    readonly base = 100,
    readonly cap = 3000,
  ) {}

  /** Start again from the base: the server answered. */
  reset(): void {
    this.#failures = 0;
  }

  /** The next delay in milliseconds, raised to what the server asked for. */
  next(atLeast?: number): number {
    const ceiling = Math.min(this.cap, this.base * 2 ** Math.min(this.#failures, 16));
    this.#failures += 1;
    const delay = ceiling * (0.5 + Math.random() / 2);
    // Jitter on top: clients that were refused together must not come back together.
    return atLeast ? Math.max(delay, atLeast + Math.random() * this.base) : delay;
  }
}

/** Waits, or until the signal is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}
