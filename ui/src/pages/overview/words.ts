// The sentences of the Overview. All pure.

import type { ActivityRecord, Server, Status } from "../../api/types";
import type { Bucket } from "../../ui/plot";
import { clock, count, duration, number, spelled } from "../../lib/format";
import { own } from "../../lib/own";

/** Reports whether a server does what it is there for: it answers, or would when asked. */
export function works(s: Server): boolean {
  return s.enabled && !s.quarantined && !s.needs_login && (s.state === "ready" || s.state === "idle");
}

/** Returns the sentence that heads the page. */
export function heading(needs: number, servers: readonly Server[]): string {
  if (needs > 0) return `${spelled(needs)} ${needs === 1 ? "thing needs" : "things need"} you`;
  const working = servers.filter(works).length;
  const starting = servers.filter((s) => s.enabled && s.state === "connecting").length;
  if (servers.every((s) => !s.enabled)) return "All servers are switched off, nothing waits.";
  const begin = starting > 0 ? `, ${starting} ${starting === 1 ? "starts" : "start"}` : "";
  return `All is well. ${count(working, "server")} ${working === 1 ? "works" : "work"}${begin}, nothing waits.`;
}

/** Returns what the log is, for the end of a sentence. */
export function logState(a: Status["activity"]): string {
  if (a.degraded) return "the log cannot be written";
  if (!a.verified) return "the log was not verified yet";
  return a.verified.ok ? "the log is intact" : "the log is not intact";
}

/** Returns the length of a bucket for the line beside the heading: "in half hours". */
export function inSteps(seconds: number): string {
  const named: Record<number, string> = { 60: "in minutes", 1800: "in half hours", 3600: "in hours", 86_400: "in days" };
  if (named[seconds]) return named[seconds];
  if (seconds < 3600) return `in steps of ${count(seconds / 60, "minute")}`;
  return seconds < 86_400 ? `in steps of ${count(seconds / 3600, "hour")}` : `in steps of ${count(seconds / 86_400, "day")}`;
}

/** Returns what the chart shows, for who does not see it. */
export function summary(buckets: readonly Bucket[], step: number, refused: number, failed: number): string {
  const sum = (key: "read" | "write" | "destructive") => buckets.reduce((n, b) => n + b[key], 0);
  const of = (b: Bucket) => b.read + b.write + b.destructive;
  const most = buckets.reduce<Bucket | undefined>((best, b) => (of(b) > (best ? of(best) : 0) ? b : best), undefined);
  const lanes = `${count(sum("read"), "read")}, ${count(sum("write"), "write")}, ${number(sum("destructive"))} destructive; ${number(refused)} refused and ${number(failed)} failed.`;
  return `Calls ${inSteps(step)}: ${lanes}` + (most ? ` Most, ${number(of(most))}, from ${clock(most.start)} on.` : "");
}

/** Returns how long a call took; the log has whole milliseconds. */
export function took(ms: number): string {
  return ms < 1 ? "less than 1 ms" : duration(ms);
}

const locked: Record<string, string> = {
  pending_approval: "waits for your review", blocked: "blocked by you", disabled_by_config: "denied by the configuration", disabled_by_user: "switched off", server_quarantined: "its server waits for your review",
  server_disabled: "its server is switched off",
};

/** Returns why a call was refused, short enough for a row. */
export function whyRefused(r: ActivityRecord): string {
  const { error_code: code, decision, tool_variant: variant } = r.metadata;
  if (code === "SERVER_MISMATCH" && variant) {
    const marked = decision?.hints?.destructive?.value === false ? "marked as not read-only" : "marked destructive";
    return `called as a ${variant.replace("call_tool_", "")}, ${marked}`;
  }
  if (code === "TOOL_LOCKED") return own(locked, decision?.status) ?? "locked";
  if (code === "ARGS_MISMATCH") return "arguments: " + (r.error_message ?? "not those of its schema");
  return r.error_message ?? code ?? "refused";
}

/** Returns when a call was refused; of one that is repeated, the last time. */
export const refusedAt = (r: Pick<ActivityRecord, "timestamp" | "last_time">): string => r.last_time ?? r.timestamp;

/** Returns the records of what was refused last, the newest first. */
export function lastRefused(all: readonly ActivityRecord[], most: number): ActivityRecord[] {
  return all.toSorted((a, b) => Date.parse(refusedAt(b)) - Date.parse(refusedAt(a))).slice(0, most);
}
