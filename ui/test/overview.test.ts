import { expect, test } from "vitest";
import { tabIcon, tabTitle } from "../src/lib/attention";
import type { ActivityRecord, Server } from "../src/api/types";
import { heading, inSteps, lastRefused, logState, summary, took, whyRefused } from "../src/pages/overview/words";

const server = (name: string, over: Partial<Server> = {}): Server => ({ name, protocol: "stdio", enabled: true, quarantined: false, state: "ready", tool_count: 3, ...over });

test("the heading is a summary", () => {
  expect(heading(5, [])).toBe("5 items need attention");
  expect(heading(1, [])).toBe("1 item needs attention");
  expect(heading(0, [server("a"), server("b", { state: "idle" }), server("c", { enabled: false })])).toBe("No issues. 2 servers ready, nothing to review.");
  expect(heading(0, [server("a"), server("b", { state: "connecting" })])).toBe("No issues. 1 server ready, 1 starting, nothing to review.");
  expect(heading(0, [server("a", { enabled: false })])).toBe("All servers are disabled. Nothing to review.");
});

test("the log is shown as verified only after a verification", () => {
  const at = "2026-11-20T14:00:00Z";
  expect(logState({ degraded: false, records: 1, verified: { at, ok: true } })).toBe("activity log verified");
  expect(logState({ degraded: false, records: 1 })).toBe("activity log not verified yet");
  expect(logState({ degraded: false, records: 1, verified: { at, ok: false } })).toBe("activity log failed verification");
  expect(logState({ degraded: true, records: 1, verified: { at, ok: true } })).toBe("activity log not writable");
});

test("steps and summary", () => {
  expect([60, 300, 1800, 3600, 21_600, 86_400, 172_800].map(inSteps)).toEqual(["per minute", "per 5 minutes", "per 30 minutes", "per hour", "per 6 hours", "per day", "per 2 days"]);
  const start = new Date(2026, 10, 20, 9, 30).toISOString();
  expect(summary([{ start, read: 2, write: 1, destructive: 0, refused: 3, failed: 1 }], 1800, 3, 1)).toBe("Calls per 30 minutes: 2 reads, 1 write, 0 destructive; 3 refused and 1 failed. Peak: 3 at 09:30.");
  expect(summary([], 1800, 0, 0)).toBe("Calls per 30 minutes: 0 reads, 0 writes, 0 destructive; 0 refused and 0 failed.");
});

test("why a call was refused", () => {
  const of = (metadata: ActivityRecord["metadata"], error_message = "long") => whyRefused({ metadata, error_message } as ActivityRecord);
  expect(of({ error_code: "SERVER_MISMATCH", tool_variant: "call_tool_write" })).toBe("called as write, marked destructive");
  expect(of({ error_code: "SERVER_MISMATCH", tool_variant: "call_tool_read", decision: { outcome: "refused", hints: { destructive: { value: false, from: "server" } } } })).toBe("called as read, marked as not read-only");
  expect(of({ error_code: "TOOL_LOCKED", decision: { outcome: "refused", status: "pending_approval" } })).toBe("needs review");
  expect(of({ error_code: "TOOL_LOCKED", decision: { outcome: "refused", status: "of later" } })).toBe("locked");
  expect(of({ error_code: "ARGS_MISMATCH" }, "a is missing")).toBe("arguments: a is missing");
  expect(of({ error_code: "OUT_OF_SCOPE" })).toBe("long");
});

test("the log has whole milliseconds", () => {
  expect([took(0), took(84)]).toEqual(["less than 1 ms", "84 ms"]);
});

test("the most recent refusal comes first, even if its record is old", () => {
  const record = (id: string, timestamp: string, last_time?: string) => ({ id, timestamp, ...(last_time ? { last_time } : {}) }) as ActivityRecord;
  const all = [record("c", "2026-11-23T10:03:00Z"), record("b", "2026-11-23T10:02:00Z", "2026-11-23T10:02:30Z"), record("a", "2026-11-23T10:00:00Z", "2026-11-23T12:01:00+01:00"), record("old", "2026-11-23T08:00:00Z", "2026-11-23T10:05:00Z")];
  expect(lastRefused(all, 3).map((r) => r.id)).toEqual(["a", "old", "c"]);
});

test("the title of the tab shows the number of waiting items", () => {
  expect([0, 3, 1200].map((n) => [tabTitle("Approvals", n), tabIcon(n)])).toEqual([
    ["Approvals · MCPProxy", "icon.svg"], ["(3) Approvals · MCPProxy", "icon-waits.svg"], ["(99+) Approvals · MCPProxy", "icon-waits.svg"],
  ]);
});
