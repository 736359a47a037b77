import type { LogLine } from "../../api/types";

/** How many lines of a log a page keeps. */
export const kept = 1000;

/** Returns the last lines of both. */
export function joined(lines: readonly LogLine[], more: readonly LogLine[]): readonly LogLine[] {
  const all = [...lines, ...more];
  return all.length > kept ? all.slice(-kept) : all;
}
