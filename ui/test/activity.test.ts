import { describe, expect, test } from "vitest";
import type { ActivityRecord, EventRecord } from "../src/api/types";
import { again, answerText, command, maskedIn } from "../src/pages/activity/command";
import { argumentWords, checks, reasonOf, remedy } from "../src/pages/activity/decision";
import { fits, none, params, sentence } from "../src/pages/activity/filters";
import { after, newestFirst, nothing, now, settle, take } from "../src/pages/activity/live";
import { parts, reach } from "../src/pages/activity/times";

const record = (over: Partial<ActivityRecord> = {}): ActivityRecord => ({
  id: "01A", type: "tool_call", status: "success", server_name: "notes", tool_name: "write_note", arguments: { title: "it's" }, timestamp: "2026-11-08T15:00:00Z",
  duration_ms: 5, request_bytes: 1, response_bytes: 1, metadata: { tool_variant: "call_tool_write", intent: { operation_type: "write", reason: "as asked" } }, ...over,
});
const event = (id: string, over: Partial<EventRecord> = {}): EventRecord => ({ id, type: "tool_call", status: "success", timestamp: "2026-11-08T15:00:00Z", operation_type: "write", server_name: "git", tool_name: "git_push", ...over });

describe("filters", () => {
  test("server:tool is split for REST, and matches in this form", () => {
    const f = { ...none, tool: ["git:git_push"] };
    expect(params(f)).toMatchObject({ server: "git", tool: ["git_push"] });
    expect(fits(f, event("1"))).toBe(true);
    expect(fits(f, event("1", { server_name: "other" }))).toBe(false);
    expect(fits({ ...none, lane: ["read"] }, event("1"))).toBe(false);
  });
  test("are a sentence", () => {
    expect(sentence({ ...none, lane: ["write", "destructive"], client: ["Codex"], q: "x" })).toBe("Lane is write or destructive, and client is Codex, and text contains “x”");
    expect(sentence({ ...none, status: ["blocked"] })).toBe("Outcome is refused");
  });
});

describe("live records", () => {
  test("newer records are added in the order of their ids, others are updated in place", () => {
    const told = nothing();
    take(told, [event("3", { status: "pending" }), event("4"), event("1")], none, "2");
    expect(newestFirst(told).map((r) => r.id)).toEqual(["4", "3"]);
    take(told, [event("3", { status: "error", duration_ms: 7 })], none, "2");
    expect(newestFirst(told).map((r) => r.status)).toEqual(["success", "error"]);
    const row = { ...newestFirst(told)[0]!, id: "1", status: "pending" as const };
    expect(now(row, told).status).toBe("success");
    expect(now({ ...row, id: "0" }, told).status).toBe("pending");
  });
  test("a record whose end does not match is removed, a record whose end matches is added", () => {
    const told = nothing();
    const running = { ...none, status: ["pending" as const] };
    take(told, [event("3", { status: "pending" })], running, "2");
    expect(told.added.size).toBe(1);
    take(told, [event("3")], running, "2");
    expect(told.added.size).toBe(0);
  });
  test("a record that the list already has is not added again", () => {
    const told = nothing();
    take(told, [event("1"), event("2"), event("3")], none, undefined);
    settle(told, "2");
    expect(newestFirst(told).map((r) => r.id)).toEqual(["3"]);
  });
  test("the end of the list includes its first record, to the microsecond", () => {
    expect(after("2026-11-08T15:00:00.123456Z")).toBe("2026-11-08T15:00:00.123457Z");
    expect(after("2026-11-08T15:00:00Z")).toBe("2026-11-08T15:00:00.000001Z");
    expect(after("2026-11-08T15:00:59.999999Z")).toBe("2026-11-08T15:01:00.000Z");
  });
});

describe("a decision", () => {
  const refused = (check: string, more = {}) => record({ status: "blocked", type: "policy_decision", metadata: { tool_variant: "call_tool_write", decision: { outcome: "refused", check, call_with: "call_tool_destructive", ...more } } });
  test("shows the checks up to the one that refused", () => {
    expect(checks({ outcome: "refused", check: "arguments" }).map((c) => [c.name, c.passed])).toEqual([["name", true], ["intent", true], ["arguments", false]]);
    expect(checks({ outcome: "allowed" })).toHaveLength(8);
    expect(checks({ outcome: "refused", check: "of_a_newer_daemon" })).toEqual([{ name: "of a newer daemon", passed: false }]);
    expect(checks({ outcome: "refused", check: "place" })).toHaveLength(9);
  });
  test("shows the effect of the arguments, and that a user is asked", () => {
    const lane = { operation: "destructive" as const, word: "DROP", by: "sql" as const, argument: "sql" };
    expect(checks({ outcome: "allowed", lane })).toHaveLength(9);
    expect(checks({ outcome: "refused", check: "lane" }).at(-1)).toEqual({ name: "argument lane", passed: false });
    expect(checks({ outcome: "asked", check: "ask" }).map((c) => c.passed)).toEqual([...Array(8).fill(true), undefined]);
    expect(checks({ outcome: "refused", check: "ask", lane })).toHaveLength(10);
    expect(checks({ outcome: "allowed", approval: "q1" }).at(-1)).toEqual({ name: "approval", passed: true });
    expect(argumentWords(lane)).toBe("By its arguments the call is destructive: “DROP” in “sql”, read as SQL.");
    expect(argumentWords({ ...lane, operation: "read", word: undefined, declared: true })).toBe("By its arguments the call is read: “sql”, read as SQL, set in the configuration.");
    expect(argumentWords({ operation: "write", by: "shell", argument: "cmd", word: "it is too long", unread: true })).toBe("By its arguments the call is write: “cmd”, read as a shell command, could not be parsed completely (it is too long).");
  });
  test("shows which call would be allowed", () => {
    expect(remedy(refused("lane", { lane: { operation: "destructive", by: "sql", argument: "sql" } }))?.text).toBe("Call it with call_tool_destructive and operation type destructive.");
    expect(remedy(refused("ask"))).toMatchObject({ page: "approvals" });
    expect(remedy({ ...refused("ask"), metadata: { ...refused("ask").metadata, error_code: "APPROVAL_DENIED" } })?.text).toBe("A user denied this call. It cannot be repeated for 15 minutes.");
    expect(remedy(refused("hints"))?.text).toBe("Call it with call_tool_destructive and operation type destructive.");
    expect(remedy(refused("callable", { status: "pending_approval" }))).toMatchObject({ page: "approvals", id: "notes:write_note" });
    expect(remedy(refused("callable", { status: "server_disabled" }))).toMatchObject({ page: "servers", id: "notes" });
    expect(remedy(record())).toBeUndefined();
  });
  test("shows who marked the tool", () => {
    const hints = { read_only: { value: false, from: "server" as const }, destructive: { value: true, from: "override" as const } };
    expect(reasonOf({ outcome: "allowed", call_with: "call_tool_destructive", hints }, "call_tool_destructive")).toBe("The configuration marks the tool destructive. It was called as destructive.");
    expect(reasonOf({ outcome: "warned", call_with: "call_tool_destructive", hints }, "call_tool_read")).toBe("The configuration marks the tool destructive, but it was called as read.");
    expect(reasonOf({ outcome: "allowed", call_with: "call_tool_destructive", hints: { read_only: { value: false, from: "default" }, destructive: { value: true, from: "default" } } }, "call_tool_destructive")).toMatch(/^The tool has no hints/);
  });
});

describe("a call", () => {
  test("is a command that a shell accepts unchanged", () => {
    expect(command(record())).toBe(`mcpproxy call tool-write notes:write_note --args '{"title":"it'\\''s"}' --reason 'as asked'`);
    expect(command(record({ arguments_truncated: true }))).toBeUndefined();
    expect(command(record({ arguments: {}, metadata: { tool_variant: "call_tool_read" } }))).toBe("mcpproxy call tool-read notes:write_note");
  });
  test("is repeated only with all of its arguments", () => {
    expect(again(record())).toEqual({ id: "notes:write_note", args: `{"title":"it's"}` });
    expect(again(record({ arguments: { key: "[masked github-token 12ab34cd]" } }))).toBeUndefined();
    expect(again(record({ arguments: { text: "x".repeat(3000) } }))).toBeUndefined();
    expect(maskedIn({ a: "[masked github-token 12ab34cd]", b: ["***masked:1***"] })).toBe(2);
  });
  test("has the texts of its response", () => {
    expect(answerText({ content: [{ type: "text", text: "a" }, { type: "image" }, { type: "text", text: "b" }] })).toBe("a\n\nb");
    expect(answerText({ structuredContent: {} })).toBeUndefined();
  });
  test("has its time in two parts", () => {
    expect(parts({ type: "tool_call", duration_ms: 212, own_us: 400 })).toEqual({ own: 0.4, server: 211.6 });
    expect(parts({ type: "tool_call", duration_ms: 0, own_us: 400 })?.server).toBe(0);
    expect(parts({ type: "tool_call", duration_ms: 3 })).toBeUndefined();
  });
});

test("the nearest span reaches the newest record", () => {
  const at = new Date("2026-11-08T15:00:00Z");
  expect(reach(new Date("2026-11-08T10:00:00Z"), at).since).toBe("6h");
  expect(reach(new Date("2026-11-05T10:00:00Z"), at).since).toBe("7d");
  expect(reach(new Date("2026-01-05T12:00:00Z"), at)).toEqual({ since: "2026-01-05T00:00:00.000Z", until: "2026-01-06T00:00:00.000Z" });
});
