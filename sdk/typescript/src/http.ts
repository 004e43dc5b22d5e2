import { Backoff, sleep } from "./backoff.js";
import {
  ApiError,
  apiError,
  ConnectionLost,
  NotSent,
  type Problem,
  TooManyRequests,
  Unavailable,
  type WindlassError,
} from "./errors.js";

export const API = "/api/v1";
const DEFAULT_URL = "http://127.0.0.1:9463";
/** Codes of errors that come before anything was sent, on Node, Bun and Deno. */
const NOT_SENT =
  /ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT|ConnectionRefused|Unable to connect|Connection refused|dns error|bad port/;

/** Where the server is and how to call it. */
export interface Connection {
  /** Else the environment variable `WINDLASS_SERVER`, else `http://127.0.0.1:9463`. */
  url?: string;
  /** Else the environment variable `WINDLASS_TOKEN`. */
  token?: string;
  /** Instead of the global `fetch`. */
  fetch?: typeof fetch;
}

/** One request. */
export interface Call {
  method: string;
  path: string;
  body?: unknown;
  /** The W3C trace context that stored jobs take over. */
  traceparent?: string | undefined;
  /** Whether sending it twice does no more than sending it once. */
  repeatable: boolean;
}

/** An answer: its status and its JSON. */
export interface Answer<T> {
  status: number;
  value: T;
}

/** Carries calls to a server. */
export class Http {
  readonly #base: string;
  readonly #headers: Record<string, string>;
  readonly #fetch: typeof fetch;

  constructor(connection: Connection) {
    const url = connection.url ?? environment("WINDLASS_SERVER") ?? DEFAULT_URL;
    const parsed = new URL(url);
    if (parsed.protocol !== "http:" && parsed.protocol !== "https:") {
      throw new TypeError(`the server's URL must be http://… or https://…, not ${url}`);
    }
    this.#base = parsed.origin + parsed.pathname.replace(/\/+$/, "");
    const token = connection.token ?? environment("WINDLASS_TOKEN");
    this.#headers = { accept: "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) };
    const given = connection.fetch ?? fetch;
    this.#fetch = (input, init) => given(input, init);
  }

  /** Sends a call once. */
  async once<T>(call: Call, timeout: number, signal?: AbortSignal): Promise<Answer<T>> {
    // Not AbortSignal.timeout and any: their timers and listeners would outlive the request.
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(new Error(`timed out after ${timeout} ms`)), timeout);
    const drop = () => abort.abort(signal?.reason);
    if (signal?.aborted) drop();
    signal?.addEventListener("abort", drop, { once: true });
    const headers: Record<string, string> = { ...this.#headers };
    if (call.traceparent !== undefined) headers.traceparent = call.traceparent;
    const init: RequestInit = {
      method: call.method,
      headers,
      redirect: "error",
      signal: abort.signal,
    };
    if (call.body !== undefined) {
      init.body = JSON.stringify(call.body);
      headers["content-type"] = "application/json";
    }
    let response: Response;
    let text: string;
    try {
      response = await this.#fetch(this.#base + call.path, init);
      text = await response.text();
    } catch (error) {
      throw transportError(call, error);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", drop);
    }
    if (!response.ok) throw apiError(response.status, problem(text), retryAfter(response));
    try {
      return { status: response.status, value: (text ? JSON.parse(text) : undefined) as T };
    } catch (error) {
      // Not from the server itself: perhaps a proxy's page.
      throw new ConnectionLost(`the answer to ${call.method} ${call.path} could not be read`, { cause: error });
    }
  }

  /** Sends a call; repeats it where that is safe. */
  async send<T>(call: Call, timeout: number, retries: number, signal?: AbortSignal): Promise<Answer<T>> {
    const backoff = new Backoff();
    for (let left = retries; ; left--) {
      try {
        return await this.once<T>(call, timeout, signal);
      } catch (error) {
        if (left <= 0 || signal?.aborted || !mayRepeat(call, error)) throw error;
        await sleep(backoff.next(error instanceof ApiError ? error.retryAfter : undefined), signal);
      }
    }
  }
}

/** Whether a call may be sent again after this error. */
function mayRepeat(call: Call, error: unknown): boolean {
  if (error instanceof NotSent || error instanceof TooManyRequests) return true;
  if (error instanceof ConnectionLost) return call.repeatable;
  if (!(error instanceof Unavailable)) return false;
  // A fault of the server (500) is not cured by repetition.
  return !error.isOutcomeUnknown || (call.repeatable && [502, 503, 504].includes(error.status));
}

/** Whether the server may be back later: what a worker waits for. */
export function isTemporary(error: unknown): boolean {
  return (
    error instanceof NotSent ||
    error instanceof ConnectionLost ||
    error instanceof TooManyRequests ||
    error instanceof Unavailable
  );
}

function transportError(call: Call, error: unknown): WindlassError {
  const texts: string[] = [];
  for (let one = error; one instanceof Error && texts.length < 5; one = one.cause) {
    texts.push(`${(one as { code?: unknown }).code ?? ""} ${one.message}`.trim());
  }
  const reason = texts.join(": ") || String(error);
  return NOT_SENT.test(reason)
    ? new NotSent(`cannot reach the server: ${reason}`, { cause: error })
    : new ConnectionLost(`no answer to ${call.method} ${call.path}: ${reason}`, { cause: error });
}

function problem(text: string): Problem {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value as Problem;
  } catch {
    // Not from the server itself: a proxy's page.
  }
  return { detail: text.slice(0, 500) };
}

function retryAfter(response: Response): number | undefined {
  const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
  return seconds >= 0 ? seconds * 1000 : undefined;
}

/** An environment variable, where there are any. */
function environment(name: string): string | undefined {
  try {
    const { process } = globalThis as { process?: { env?: Record<string, string | undefined> } };
    return process?.env?.[name] || undefined;
  } catch {
    // Deno without the permission to read it.
    return undefined;
  }
}
