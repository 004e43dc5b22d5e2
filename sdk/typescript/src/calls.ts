import { type Duration, toApi } from "./duration.js";
import { API, type Call } from "./http.js";

/** Carries a call to the server. */
export type Send = <T>(call: Call) => Promise<T>;

export function get(path: string, query: object = {}): Call {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return { method: "GET", path: `${API}${path}${search ? `?${search}` : ""}`, repeatable: true };
}

export function post(path: string, body: unknown, repeatable: boolean): Call {
  return { method: "POST", path: API + path, body, repeatable };
}

export function time(value: Date | string | undefined): string | undefined {
  return value instanceof Date ? value.toISOString() : value;
}

export function duration(value: Duration | undefined): Duration | undefined {
  return value === undefined ? undefined : toApi(value);
}
