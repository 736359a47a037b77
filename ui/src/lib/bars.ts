// Converts buckets of calls to stacked bars, in the units of the axes.

import { number } from "./format";

export interface Counts { start: string; read: number; write: number; destructive: number; refused: number; failed: number }
export type Kind = "read" | "write" | "destructive" | "refused" | "failed" | "ghost";
/** A bar: its start and end in seconds, its lower and upper count. Counts below the line are negative. */
export interface Bar { kind: Kind; from: number; to: number; low: number; high: number }

/** Returns the bars of buckets of step seconds: lanes upwards, refused and failed downwards. Lanes outside the filter are ghosts. */
export function barsOf(buckets: readonly Counts[], step: number, lanes?: readonly string[]): Bar[] {
  const out: Bar[] = [];
  for (const b of buckets) {
    const from = Date.parse(b.start) / 1000;
    const put = (kind: Kind, low: number, high: number) => out.push({ kind, from, to: from + step, low, high });
    let up = 0;
    for (const lane of ["read", "write", "destructive"] as const) {
      if (!b[lane]) continue;
      put(lanes && !lanes.includes(lane) ? "ghost" : lane, up, up + b[lane]);
      up += b[lane];
    }
    if (b.refused) put("refused", -b.refused, 0);
    if (b.failed) put("failed", -b.refused - b.failed, -b.refused);
  }
  return out;
}

/** Returns the ends of the time axis in seconds. */
export function edges(buckets: readonly Counts[], step: number): [number, number] {
  if (buckets.length === 0) return [0, step];
  return [Date.parse(buckets[0]!.start) / 1000, Date.parse(buckets[buckets.length - 1]!.start) / 1000 + step];
}

/** Returns the labels of an axis of counts. */
export function axisValues(all: readonly number[]): string[] {
  return all.map((n) => (n > 0 ? number(n) : ""));
}

const digit = 7; // px, the widest of a label at 11 px

/** Returns the axis width at which no label is cut, in px. */
export function axisSize(values: readonly string[] | null): number {
  return Math.max(30, Math.max(0, ...(values ?? []).map((v) => v.length)) * digit + 8);
}

/** Returns about two round numbers above zero, up to top. */
export function nice(top: number): number[] {
  const rough = top / 2;
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = Math.max(1, [5, 2.5, 2, 1].map((n) => n * power).find((n) => n <= rough && Number.isInteger(n)) ?? power);
  const out: number[] = [];
  for (let n = step; n <= top; n += step) out.push(n);
  return out;
}
