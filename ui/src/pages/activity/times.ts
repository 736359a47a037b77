// Durations of calls, and time ranges of records.

import type { ActivityRecord } from "../../api/types";
import { shortest, type Range } from "../../lib/range";

/** Returns the time of a call in MCPProxy and in the server, in ms; undefined if unknown. duration_ms has whole milliseconds only. */
export function parts(r: Pick<ActivityRecord, "duration_ms" | "own_us" | "type">): { own: number; server: number | undefined } | undefined {
  if (r.own_us === undefined) return undefined;
  const own = r.own_us / 1000;
  if (r.type !== "tool_call") return { own, server: undefined };
  return { own, server: Math.max(0, r.duration_ms - own) };
}

/** Returns the shortest period that contains at; beyond 30 days, the day around it. */
export function reach(at: Date, now: Date): Range {
  const since = shortest(at, now);
  if (since) return { since, until: "" };
  return { since: new Date(at.getTime() - 43_200_000).toISOString(), until: new Date(at.getTime() + 43_200_000).toISOString() };
}
