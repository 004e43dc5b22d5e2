/** Milliseconds, or text: `500ms`, `30s`, `1m30s`, `2h`, `7d`. */
export type Duration = number | string;

const UNITS: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** A duration in milliseconds. */
export function milliseconds(duration: Duration): number {
  if (typeof duration === "number") {
    if (!(duration >= 0)) throw new RangeError("a duration must not be negative");
    return Math.round(duration);
  }
  if (/^\d+$/.test(duration)) return Number(duration);
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(duration)) {
    throw new RangeError(`not a duration: ${JSON.stringify(duration)}; write 500ms, 30s, 1m30s or 2h`);
  }
  let sum = 0;
  for (const [, number, unit] of duration.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    sum += Number(number) * (UNITS[unit ?? ""] ?? 0);
  }
  return Math.round(sum);
}

/** The form the API takes: text as it is, numbers as whole milliseconds. */
export function toApi(duration: Duration): Duration {
  return typeof duration === "string" ? duration : milliseconds(duration);
}
