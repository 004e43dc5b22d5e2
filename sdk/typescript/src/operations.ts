import { duration, get, post, type Send, time } from "./calls.js";
import { API } from "./http.js";
import type {
  BulkResult,
  DeadLetterFilter,
  DeadLetterGroup,
  Hold,
  Job,
  KindSettings,
  NewHold,
  Page,
  Queue,
  QueueSettings,
  WhichDeadLetters,
} from "./types.js";

/** Queues: `client.queues`. The tenant `"*"` means the queues of this name of all tenants. */
export class Queues {
  readonly #send: Send;

  /** @internal */
  constructor(send: Send) {
    this.#send = send;
  }

  /** Depth, oldest job and settings of each queue. */
  async list(options: { tenant?: string } = {}): Promise<Queue[]> {
    return (await this.#send<Page<Queue>>(get("/queues", options))).items;
  }

  /** Sets a queue's policy, retention, limits, breaker and rules; those not named return to their defaults. */
  async set(name: string, settings: QueueSettings, options: { tenant?: string } = {}): Promise<QueueSettings> {
    const { path } = get(`/queues/${encodeURIComponent(name)}`, options);
    const body = { ...settings, maxHold: duration(settings.maxHold) };
    return (await this.#send<{ settings: QueueSettings }>({ method: "PUT", path, body, repeatable: true })).settings;
  }

  /** Nothing of the queue starts until it is resumed. Answers how many queues have this name. */
  pause(name: string, options: { tenant?: string } = {}): Promise<number> {
    return this.#switch(name, "pause", options);
  }

  /** Resumes a paused queue. */
  resume(name: string, options: { tenant?: string } = {}): Promise<number> {
    return this.#switch(name, "resume", options);
  }

  /** Cancels all waiting jobs of a queue. Answers how many. */
  async purge(name: string, options: { tenant?: string } = {}): Promise<number> {
    const { path } = get(`/queues/${encodeURIComponent(name)}/purge`, options);
    // Repeating it would cancel jobs that were stored in between.
    return (await this.#send<{ cancelled: number }>({ method: "POST", path, repeatable: false })).cancelled;
  }

  async #switch(name: string, action: string, options: { tenant?: string }): Promise<number> {
    const { path } = get(`/queues/${encodeURIComponent(name)}/${action}`, options);
    return (await this.#send<{ queues: number }>({ method: "POST", path, repeatable: true })).queues;
  }
}

/** Holds: `client.holds`. */
export class Holds {
  readonly #send: Send;

  /** @internal */
  constructor(send: Send) {
    this.#send = send;
  }

  /** What is held, and open circuit breakers. */
  async list(options: { tenant?: string } = {}): Promise<Hold[]> {
    return (await this.#send<Page<Hold>>(get("/holds", options))).items;
  }

  /** Nothing of the queue, or of the limit key, starts until then. Answers how many are held. */
  async place(hold: NewHold): Promise<number> {
    const body = { ...hold, for: duration(hold.for), until: time(hold.until) };
    return (await this.#send<{ held: number }>({ method: "PUT", path: `${API}/holds`, body, repeatable: true })).held;
  }

  /** Ends a hold. Answers how many were released. */
  async release(which: { queue?: string; key?: string; tenant?: string }): Promise<number> {
    const { path } = get("/holds", which);
    return (await this.#send<{ held: number }>({ method: "DELETE", path, repeatable: true })).held;
  }
}

/** Settings of kinds, for every tenant and queue: `client.kinds`. */
export class Kinds {
  readonly #send: Send;

  /** @internal */
  constructor(send: Send) {
    this.#send = send;
  }

  /** The kinds that have settings of their own, by name. */
  async list(): Promise<Record<string, KindSettings>> {
    const { items } = await this.#send<Page<{ name: string; settings: KindSettings }>>(get("/kinds"));
    return Object.fromEntries(items.map(({ name, settings }) => [name, settings]));
  }

  /** Sets the policy and error rules of a kind; what is left out returns to what the nodes' files say. */
  async set(name: string, settings: KindSettings): Promise<KindSettings> {
    const path = `${API}/kinds/${encodeURIComponent(name)}`;
    const call = { method: "PUT", path, body: settings, repeatable: true };
    return (await this.#send<{ settings: KindSettings }>(call)).settings;
  }

  /** Removes what was set here. */
  async remove(name: string): Promise<void> {
    await this.set(name, {});
  }
}

/** Failed jobs that await manual action: `client.deadLetters`. */
export class DeadLetters {
  readonly #send: Send;

  /** @internal */
  constructor(send: Send) {
    this.#send = send;
  }

  /** One page of dead letters, newest first. */
  list(filter: DeadLetterFilter & { limit?: number; cursor?: string } = {}): Promise<Page<Job>> {
    return this.#send(get("/dead-letters", { ...filter, since: time(filter.since) }));
  }

  /** Groups of similar failures, the largest first. */
  async groups(filter: DeadLetterFilter = {}): Promise<DeadLetterGroup[]> {
    const query = { ...filter, since: time(filter.since), group: true };
    return (await this.#send<Page<DeadLetterGroup>>(get("/dead-letters", query))).items;
  }

  /** Sends dead letters again; `rate` is in jobs per second. */
  replay(which: WhichDeadLetters, options: { rate?: number } = {}): Promise<BulkResult> {
    return this.#send(post("/dead-letters/replay", { ...whichToApi(which), ...options }, "ids" in which));
  }

  /** Declares dead letters dealt with. They stay in the archive. */
  discard(which: WhichDeadLetters, options: { reason?: string } = {}): Promise<BulkResult> {
    return this.#send(post("/dead-letters/discard", { ...whichToApi(which), ...options }, "ids" in which));
  }
}

function whichToApi(which: WhichDeadLetters): object {
  if ("ids" in which) return { ids: which.ids };
  if ("all" in which) return { filter: {}, all: true };
  return { filter: { ...which.filter, since: time(which.filter.since) } };
}
