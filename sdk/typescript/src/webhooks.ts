import { WebhookError } from "./errors.js";

/** Headers as `fetch` and as Node's servers give them. */
export type WebhookHeaders = Headers | Record<string, string | string[] | undefined>;

export interface VerifyOptions {
  /** How far the webhook's time may be from ours, in seconds; 300. */
  tolerance?: number;
  /** The present time in seconds. */
  now?: number;
}

/**
 * Checks a received webhook by the Standard Webhooks scheme and returns its body as a value. Throws `WebhookError` if it
 * is not genuine.
 *
 * `body` is the raw body, before any parsing. `secret` is `whsec_…`; give several while one is being replaced.
 */
export async function verifyWebhook<T = unknown>(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  options: VerifyOptions = {},
): Promise<T> {
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature");
  if (!/^\d{1,12}$/.test(timestamp)) throw new WebhookError("webhook-timestamp is not a number of seconds");
  const tolerance = options.tolerance ?? 300;
  if (Math.abs((options.now ?? Date.now() / 1000) - Number(timestamp)) > tolerance) {
    throw new WebhookError(`the timestamp is more than ${tolerance} s from now`);
  }
  const signed = message(id, timestamp, body);
  let matches = false;
  for (const one of typeof secret === "string" ? [secret] : secret) {
    const key = await importKey(one, "verify");
    for (const signature of signatures.split(" ")) {
      const bytes = signature.startsWith("v1,") ? decodeBase64(signature.slice(3)) : undefined;
      // Every one is compared, and in constant time, so that the time taken says nothing.
      if (bytes && (await crypto.subtle.verify("HMAC", key, bytes, signed))) matches = true;
    }
  }
  if (!matches) throw new WebhookError("no signature matches");
  try {
    return JSON.parse(typeof body === "string" ? body : new TextDecoder().decode(body)) as T;
  } catch (error) {
    throw new WebhookError("the signature is genuine, but the body is not JSON", { cause: error });
  }
}

/** The value of `webhook-signature`; useful in tests of a receiver. */
export async function signWebhook(
  id: string,
  timestamp: number,
  body: string | Uint8Array,
  secret: string,
): Promise<string> {
  const key = await importKey(secret, "sign");
  const signature = await crypto.subtle.sign("HMAC", key, message(id, String(timestamp), body));
  return `v1,${btoa(String.fromCharCode(...new Uint8Array(signature)))}`;
}

function header(headers: WebhookHeaders, name: string): string {
  if (headers instanceof Headers) return headers.get(name) ?? missing(name);
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return (Array.isArray(found) ? found[0] : found) ?? missing(name);
}

function missing(name: string): never {
  throw new WebhookError(`the header ${name} is missing`);
}

function message(id: string, timestamp: string, body: string | Uint8Array): Uint8Array<ArrayBuffer> {
  const head = new TextEncoder().encode(`${id}.${timestamp}.`);
  const tail = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const all = new Uint8Array(head.length + tail.length);
  all.set(head);
  all.set(tail, head.length);
  return all;
}

function importKey(secret: string, use: "sign" | "verify"): Promise<CryptoKey> {
  const bytes = decodeBase64(secret.replace(/^whsec_/, ""));
  // The text is not repeated in the error: it may be a real secret, mistyped.
  if (!bytes) throw new TypeError("a webhook secret is `whsec_` followed by base64");
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, [use]);
}

function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  } catch {
    return undefined;
  }
}
