import { expect, test } from "vitest";
import type { Server, Waiting, WaitingTool } from "../src/api/types";
import { clean, left, progress, sentence } from "../src/pages/overview/start/model";

const server = (name: string, over: Partial<Server> = {}): Server => ({ name, protocol: "stdio", enabled: true, quarantined: false, state: "ready", tool_count: 14, ...over });
const tool = (name: string, over: Partial<WaitingTool> = {}): WaitingTool => ({ name, server: name.split(":")[0]!, tool: name.split(":")[1]!, reason: "new", fingerprint: "f", verdict: "clean", findings: [], lane: "read", ...over });
const waiting = (tools: WaitingTool[]): Waiting => ({ servers: [], tools, total_tools: tools.length, offers: [], total_offers: 0, total_blocked: 0, total_findings: 0, total_poisoned: 0 });

test("only items that the daemon approves together are accepted in bulk", () => {
  const w = waiting([tool("a:x", { together: true }), tool("a:y", { verdict: "review" }), tool("a:z"), tool("a:no", { reason: "blocked" })]);
  expect(clean(w).map((t) => t.name)).toEqual(["a:x"]);
  expect(left(w)).toBe(3);
  expect(clean(undefined)).toEqual([]);
});

test("the progress of a server", () => {
  expect(progress(server("a", { state: "connecting", step: "installing" }), undefined)).toEqual({ kind: "moving", word: "installing" });
  expect(progress(server("a", { state: "connecting", step: "installing", trouble: "no network" }), undefined)).toEqual({ kind: "wait", word: "cannot download", why: "no network" });
  expect(progress(server("a", { state: "failed", last_error: "gone" }), undefined)).toMatchObject({ kind: "bad", why: "gone" });
  expect(progress(server("a", { state: "needs_variable", last_error: "it needs X_Y" }), undefined)).toEqual({ kind: "wait", word: "needs a variable", why: "it needs X_Y" });
  expect(progress(server("a", { state: "needs_secret", last_error: "it needs S" }), undefined)).toEqual({ kind: "wait", word: "needs a secret", why: "it needs S" });
  expect(progress(server("a"), waiting([]))).toEqual({ kind: "ready", word: "14 tools, clean" });
  expect(progress(server("a"), waiting([tool("a:x", { verdict: "block" }), tool("a:y")]))).toEqual({ kind: "wait", word: "14 tools, 1 with findings" });
  expect(progress(server("a"), waiting([tool("a:y")]))).toEqual({ kind: "wait", word: "14 tools, clean, 1 to approve" });
});

test("a sentence about the servers", () => {
  expect(sentence([server("filesystem")])).toBe("Which files are in my code folder? Use mcpproxy.");
  expect(sentence([server("x", { state: "failed" }), server("notes")])).toBe("Which notes do I have? Use mcpproxy.");
  expect(sentence([server("qqq")])).toBe("What can qqq do? Use mcpproxy.");
  expect(sentence([server("filesystem", { enabled: false })])).toBe("Which tools do you have? Use mcpproxy.");
});
