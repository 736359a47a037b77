// The sentences of the Overview. All pure.

import type { ActivityRecord, Server, Status } from "../../api/types";
import type { Bucket } from "../../ui/plot";
import { clock, count, duration, number } from "../../lib/format";
import { own } from "../../lib/own";

/** Reports whether a server is ready, or idle until a call starts it. */
export function works(s: Server): boolean {
  return s.enabled && !s.quarantined && !s.needs_login && (s.state === "ready" || s.state === "idle");
}

/** Returns the heading of the page. */
export function heading(needs: number, servers: readonly Server[]): string {
  if (needs > 0) return `${number(needs)} ${needs === 1 ? "item needs" : "items need"} attention`;
  const working = servers.filter(works).length;
  const starting = servers.filter((s) => s.enabled && s.state === "connecting").length;
  if (servers.every((s) => !s.enabled)) return "All servers are disabled. Nothing to review.";
  const begin = starting > 0 ? `, ${starting} starting` : "";
  return `No issues. ${count(working, "server")} ready${begin}, nothing to review.`;
}

/** Returns the state of the activity log, for the end of a sentence. */
export function logState(a: Status["activity"]): string {
  if (a.degraded) return "activity log not writable";
  if (!a.verified) return "activity log not verified yet";
  return a.verified.ok ? "activity log verified" : "activity log failed verification";
}

/** Returns the length of a bucket: "per 30 minutes". */
export function inSteps(seconds: number): string {
  const named: Record<number, string> = { 60: "per minute", 3600: "per hour", 86_400: "per day" };
  if (named[seconds]) return named[seconds];
  if (seconds < 3600) return `per ${count(seconds / 60, "minute")}`;
  return seconds < 86_400 ? `per ${count(seconds / 3600, "hour")}` : `per ${count(seconds / 86_400, "day")}`;
}

/** Returns the text alternative of the chart. */
export function summary(buckets: readonly Bucket[], step: number, refused: number, failed: number): string {
  const sum = (key: "read" | "write" | "destructive") => buckets.reduce((n, b) => n + b[key], 0);
  const of = (b: Bucket) => b.read + b.write + b.destructive;
  const most = buckets.reduce<Bucket | undefined>((best, b) => (of(b) > (best ? of(best) : 0) ? b : best), undefined);
  const lanes = `${count(sum("read"), "read")}, ${count(sum("write"), "write")}, ${number(sum("destructive"))} destructive; ${number(refused)} refused and ${number(failed)} failed.`;
  return `Calls ${inSteps(step)}: ${lanes}` + (most ? ` Peak: ${number(of(most))} at ${clock(most.start)}.` : "");
}

/** Returns how long a call took; the log has whole milliseconds. */
export function took(ms: number): string {
  return ms < 1 ? "less than 1 ms" : duration(ms);
}

const locked: Record<string, string> = {
  pending_approval: "needs review", blocked: "blocked by you", disabled_by_config: "disabled in the configuration", disabled_by_user: "disabled", server_quarantined: "its server needs review",
  server_disabled: "its server is disabled",
};

/** Returns why a call was refused, short enough for a row. */
export function whyRefused(r: ActivityRecord): string {
  const { error_code: code, decision, tool_variant: variant } = r.metadata;
  if (code === "SERVER_MISMATCH" && variant) {
    const marked = decision?.hints?.destructive?.value === false ? "marked as not read-only" : "marked destructive";
    return `called as ${variant.replace("call_tool_", "")}, ${marked}`;
  }
  if (code === "TOOL_LOCKED") return own(locked, decision?.status) ?? "locked";
  if (code === "ARGS_MISMATCH") return "arguments: " + (r.error_message ?? "do not match the schema");
  return r.error_message ?? code ?? "refused";
}

/** Returns when a call was refused; for a repeated refusal, the last time. */
export const refusedAt = (r: Pick<ActivityRecord, "timestamp" | "last_time">): string => r.last_time ?? r.timestamp;

/** Returns the latest refusals, the newest first. */
export function lastRefused(all: readonly ActivityRecord[], most: number): ActivityRecord[] {
  return all.toSorted((a, b) => Date.parse(refusedAt(b)) - Date.parse(refusedAt(a))).slice(0, most);
}
