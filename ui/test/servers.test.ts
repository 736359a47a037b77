import { expect, test } from "vitest";
import type { Server } from "../src/api/types";
import { broken, cause, groupOf, maskIn, rows, sentence, shares, stretches, tools } from "../src/pages/servers/model";

const server = (name: string, s: Partial<Server> = {}): Server => ({ name, protocol: "stdio", enabled: true, quarantined: false, state: "ready", tool_count: 3, ...s });

test("who needs a person comes first, and stays there while it is tried again", () => {
  const all = [
    server("a"), server("b", { enabled: false, state: "stopped" }), server("c", { state: "failed" }), server("d", { state: "connecting", last_error: "exit status 1" }),
    server("e", { quarantined: true, state: "stopped" }), server("f", { state: "needs_login" }), server("g", { state: "connecting" }), server("h", { enabled: false, quarantined: true }),
  ];
  expect(all.map(groupOf)).toEqual(["work", "off", "need", "need", "need", "need", "work", "off"]);
  expect(broken(all[5]!)).toBe(false);
  expect(sentence(all)).toBe("Four servers need you, two work");
  const names = (r: ReturnType<typeof rows>) => r.map((x) => ("server" in x ? x.server.name : `${x.group} ${x.count}`));
  expect(names(rows(all, "", ["off"]))).toEqual(["need 4", "c", "d", "e", "f", "work 2", "a", "g", "off 2"]);
  expect(names(rows(all, "B", ["off"]))).toEqual(["off 1", "b"]); // what is searched for is shown
  expect(rows(all, "zz", [])).toEqual([]);
});

test("the heading is a sentence whatever there is", () => {
  expect(sentence([])).toBe("No server yet");
  expect(sentence([server("a")])).toBe("One server works");
  expect(sentence([server("a", { enabled: false })])).toBe("The one server is off");
  expect(sentence([server("a", { state: "failed" })])).toBe("One server needs you, none works");
  expect(sentence([server("a", { state: "failed" }), server("b")])).toBe("One server needs you, one works");
});

test("a cause is a sentence of ours", () => {
  expect(cause({ failure: "EXITED: exit status 1", last_error: "exit status 1: <b>mine</b>" })).toBe("Exited with code 1.");
  expect(cause({ failure: "UNREACHABLE: nothing answers at its address" })).toBe("Nothing answers at its address.");
  expect(cause({})).toBe("It is not connected.");
});

test("tools that nobody has listed are not none", () => {
  expect(tools(server("a", { tool_count: 32, tools: { callable: 30, disabled_by_user: 2 } }))).toEqual({ callable: 30, total: 32 });
  expect(tools(server("a", { tool_count: 0 }))).toEqual({ callable: 0, total: 0 });
  expect(tools(server("a", { tool_count: 0, state: "idle", hint: "lazy" }))).toBeUndefined();
  expect(tools(server("a", { tool_count: 0, state: "failed" }))).toBeUndefined();
  expect(tools(server("a", { tool_count: 7, enabled: false, state: "stopped" }))).toEqual({ callable: 7, total: 7 });
});

test("a mask is found before it is written back", () => {
  expect(maskIn("npx --key=[masked api-key 03aafb02]")).toBe("[masked api-key 03aafb02]");
  expect(maskIn("***masked:1***")).toBe("***masked:1***");
  expect(maskIn("npx ** [x]")).toBe("");
});

test("availability covers what the log knows of the last 24 hours", () => {
  const now = new Date("2026-01-02T00:00:00Z");
  const all = stretches([{ at: "2025-12-30T00:00:00Z", state: "ready" }, { at: "2026-01-01T12:00:00Z", state: "failed" }, { at: "2026-01-01T18:00:00Z", state: "ready" }], now);
  expect(all).toEqual([{ state: "ready", from: 0, to: 0.5 }, { state: "failed", from: 0.5, to: 0.75 }, { state: "ready", from: 0.75, to: 1 }]);
  expect(shares(all)).toEqual([{ state: "ready", share: 0.75 }, { state: "failed", share: 0.25 }]);
  expect(stretches(undefined, now)).toEqual([]);
});
