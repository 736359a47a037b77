import type { LogLine } from "../../api/types";

/** How many lines of a log a page keeps. */
export const kept = 1000;

/** Returns the last lines of both. */
export function joined(lines: readonly LogLine[], more: readonly LogLine[]): readonly LogLine[] {
  const all = [...lines, ...more];
  return all.length > kept ? all.slice(-kept) : all;
}

/** Returns the last lines of what the last try has written, count at most: our remark that it came to an end ends one. */
export function lastTry(lines: readonly LogLine[], count: number): LogLine[] {
  const ends = (i: number) => lines[i]?.stream === "mcpproxy" && /^(not |dis)connected\b/.test(lines[i].text);
  let from = lines.length - 1;
  while (from > 0 && !ends(from - 1)) from--;
  return lines.slice(Math.max(0, from)).slice(-count);
}
