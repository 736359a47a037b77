// The time range that pages share: a period that ends now, a start and an end, or all records.

import { own } from "./own";
import { clock, date } from "./format";

/** first: the time of the oldest record. */
export interface Range { since: string; until: string; first?: Date }

export const periods = ["15m", "1h", "6h", "24h", "7d", "30d"] as const;
/** since of the range of all records. */
export const all = "all";
const labels: Record<string, string> = { "15m": "Last 15 minutes", "1h": "Last hour", "6h": "Last 6 hours", "24h": "Last 24 hours", "7d": "Last 7 days", "30d": "Last 30 days", [all]: "All records" };
const units: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** Returns the length of a period such as 24h in ms, 0 for anything else. */
export function periodMs(period: string): number {
  const m = /^(\d{1,4})([mhd])$/.exec(period);
  return m ? Number(m[1]) * units[m[2]!]! : 0;
}

/** Returns the shortest period that contains at; undefined if none does. */
export function shortest(at: Date, now: Date): string | undefined {
  return periods.find((p) => now.getTime() - at.getTime() < periodMs(p) * 0.98);
}

/** Returns the default range: the shortest that contains all records, at most a week. */
export function fitting(first: Date, now: Date): string {
  const period = shortest(first, now);
  return period === undefined || periodMs(period) > periodMs("7d") ? "7d" : period;
}

/** Returns the start and the end of a range. An invalid range becomes the last 24 hours. */
export function ends(range: Range, now: Date): { from: Date; to: Date } {
  const ms = periodMs(range.since);
  if (ms > 0) return { from: new Date(now.getTime() - ms), to: now };
  if (range.since === all && range.first) return { from: range.first, to: now };
  const from = new Date(range.since);
  const to = range.until ? new Date(range.until) : now;
  if (!(from.getTime() < to.getTime())) return { from: new Date(now.getTime() - 86_400_000), to: now };
  return { from, to };
}

/** Returns the label of the range button: "Last 24 hours", "Mon 14:00 to 15:30". */
export function label(range: Range, now: Date): string {
  const named = own(labels, range.since);
  if (named) return named;
  if (periodMs(range.since)) return `Last ${range.since}`;
  const { from, to } = ends(range, now);
  const day = (t: Date) => (t.toDateString() === now.toDateString() ? "" : date(t, now) + " ");
  const same = from.toDateString() === to.toDateString();
  return `${day(from)}${clock(from)} to ${range.until ? (same ? "" : date(to, now) + " ") + clock(to) : "now"}`;
}

/** Returns the range for use in a sentence: "in the last 24 hours", "from 14:00 to 15:30". */
export function within(range: Range, now: Date): string {
  if (range.since === all) return "since the first record";
  const text = label(range, now);
  return text.startsWith("Last") ? `in the l${text.slice(1)}` : `from ${text}`;
}

/** Returns start_time and end_time for REST. Without an end, records with a later time are included too. */
export function params(range: Range, now: Date): { start_time: string; end_time?: string } {
  const { from, to } = ends(range, now);
  return { start_time: from.toISOString(), ...(range.until ? { end_time: to.toISOString() } : {}) };
}

/** Returns a step for about count buckets, in the form of REST: 30m, 6h. */
export function step(range: Range, now: Date, count = 48): string {
  const { from, to } = ends(range, now);
  const minutes = (to.getTime() - from.getTime()) / 60_000 / count;
  const nice = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080].find((n) => n >= minutes * 0.99) ?? 10_080;
  return nice < 60 ? `${nice}m` : `${nice / 60}h`;
}

/** Returns a time in the form of a datetime-local field, in local time to the minute. */
export function localTime(at: Date): string {
  const two = (n: number) => String(n).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}T${clock(at)}`;
}
