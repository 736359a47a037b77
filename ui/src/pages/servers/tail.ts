import type { LogLine } from "../../api/types";

/** How many lines of a log a page keeps. */
export const kept = 1000;

/** Returns the last lines of both. */
export function joined(lines: readonly LogLine[], more: readonly LogLine[]): readonly LogLine[] {
  const all = [...lines, ...more];
  return all.length > kept ? all.slice(-kept) : all;
}

/** Returns the last lines of what the last try has written, count at most: our remark ends one. */
export function lastTry(lines: readonly LogLine[], count: number): LogLine[] {
  const ours = (i: number) => lines[i]?.stream === "mcpproxy";
  let from = lines.length - 1;
  while (from > 0 && !ours(from - 1)) from--;
  return lines.slice(Math.max(0, from)).slice(-count);
}
