import { expect, test } from "vitest";
import type { LogLine, Server, ServerDetail } from "../src/api/types";
import { cause, decisive, lastTry, times, variableIn } from "../src/lib/failure";
import { broken, groupOf, maskIn, rows, sentence, shares, stretches, tools } from "../src/pages/servers/model";
import { parsed, settingsOf, textOf, valueOf } from "../src/pages/servers/settings";
import { joined, kept } from "../src/pages/servers/tail";

const server = (name: string, s: Partial<Server> = {}): Server => ({ name, protocol: "stdio", enabled: true, quarantined: false, state: "ready", tool_count: 3, ...s });

test("a server that needs attention comes first, and stays there during a retry", () => {
  const all = [
    server("a"), server("b", { enabled: false, state: "stopped" }), server("c", { state: "failed" }), server("d", { state: "connecting", last_error: "exit status 1" }),
    server("e", { quarantined: true, state: "stopped" }), server("f", { state: "needs_login" }), server("g", { state: "connecting" }), server("h", { enabled: false, quarantined: true }),
  ];
  expect(all.map(groupOf)).toEqual(["work", "off", "need", "need", "need", "need", "work", "off"]);
  expect(broken(all[5]!)).toBe(false);
  expect(sentence(all)).toBe("4 servers need attention, 2 running");
  const names = (r: ReturnType<typeof rows>) => r.map((x) => ("server" in x ? x.server.name : `${x.group} ${x.count}`));
  expect(names(rows(all, "", ["off"]))).toEqual(["need 4", "c", "d", "e", "f", "work 2", "a", "g", "off 2"]);
  expect(names(rows(all, "B", ["off"]))).toEqual(["off 1", "b"]); // a server that the user searches for is shown
  expect(rows(all, "zz", [])).toEqual([]);
  expect(names(rows(all, "", ["off"], "-name"))).toEqual(["need 4", "f", "e", "d", "c", "work 2", "g", "a", "off 2"]); // each group in the order
});

test("the heading is a sentence in each state", () => {
  expect(sentence([])).toBe("No servers yet");
  expect(sentence([server("a")])).toBe("1 server running");
  expect(sentence([server("a", { enabled: false })])).toBe("The server is disabled");
  expect(sentence([server("a", { state: "failed" })])).toBe("1 server needs attention, none running");
  expect(sentence([server("a", { state: "failed" }), server("b")])).toBe("1 server needs attention, 1 running");
});

test("a cause is MCPProxy's own sentence", () => {
  expect(cause({ failure: "EXITED: exit status 1", last_error: "exit status 1: <b>mine</b>" })).toBe("Exited with code 1.");
  expect(cause({ failure: "UNREACHABLE: nothing answers at its address" })).toBe("Nothing answers at its address.");
  expect(cause({ failure: "UNREACHABLE: nothing answers at its address", last_error: "nothing answers at its address 127.0.0.1:9: the connection was refused" })).toBe("Nothing answers at its address 127.0.0.1:9: the connection was refused.");
  expect(cause({})).toBe("Not connected.");
});

test("unlisted tools are not shown as 0", () => {
  expect(tools(server("a", { tool_count: 32, tools: { callable: 30, disabled_by_user: 2 } }))).toEqual({ callable: 30, total: 32 });
  expect(tools(server("a", { tool_count: 0 }))).toEqual({ callable: 0, total: 0 });
  expect(tools(server("a", { tool_count: 0, state: "idle", hint: "lazy" }))).toBeUndefined();
  expect(tools(server("a", { tool_count: 0, state: "failed" }))).toBeUndefined();
  expect(tools(server("a", { tool_count: 7, enabled: false, state: "stopped" }))).toEqual({ callable: 7, total: 7 });
});

test("a mask is rejected before it is written back", () => {
  expect(maskIn("npx --key=[masked api-key 03aafb02]")).toBe("[masked api-key 03aafb02]");
  expect(maskIn("***masked:1***")).toBe("***masked:1***");
  expect(maskIn("npx ** [x]")).toBe("");
});

test("the end of a log belongs to the last attempt", () => {
  const line = (stream: LogLine["stream"], text: string): LogLine => ({ stream, text });
  const one = [line("stderr", "a"), line("stderr", "b"), line("mcpproxy", "not connected")];
  expect(lastTry([...one, ...one], 6)).toEqual(one);
  expect(lastTry([...one, ...one], 2)).toEqual(one.slice(1));
  const silent = [line("mcpproxy", "not connected: refused"), line("mcpproxy", "not connected: refused"), line("mcpproxy", "not connected: refused")];
  expect(lastTry(silent, 6)).toEqual(silent.slice(2));
  expect(lastTry([...one, line("stderr", "c")], 6)).toEqual([line("stderr", "c")]);
  const slow = [line("stderr", "npm error"), line("mcpproxy", "it is stopped when npx has finished its installation"), line("mcpproxy", "not connected: the process ended")];
  expect(lastTry([...one, ...slow], 6)).toEqual(slow); // a remark of MCPProxy in between does not end it
  expect(lastTry([], 6)).toEqual([]);
  expect(joined(Array(kept).fill(one[0]), [one[1]!])).toHaveLength(kept);
});

test("settings are texts that can be read back", () => {
  const d: ServerDetail = { ...server("a"), launch: { protocol: "stdio", command: "npx", args: ["-y", "a b"] }, disabled_tools: ["x", "y*"], hint_overrides: { "*": { readOnlyHint: true } }, call_timeout: "30s" };
  for (const { key } of settingsOf(d)) {
    const text = textOf(d, key);
    expect(parsed(key, text), key).toEqual(valueOf(d, key) ?? null);
  }
  expect(settingsOf({ protocol: "http" }).map((s) => s.key)).toContain("url");
  expect(() => parsed("command", "  ")).toThrow("disable it");
  expect(() => parsed("command", "npx --key=[masked api-key 03aafb02]")).toThrow("is a masked secret"); // it would be written into the file
  expect(() => parsed("hint_overrides", "[]")).toThrow("object");
  expect(() => parsed("hint_overrides", "{")).toThrow("Invalid JSON");
  expect(parsed("enabled_tools", " a \n\n b ")).toEqual(["a", "b"]);
});

test("availability covers the known part of the last 24 hours", () => {
  const now = new Date("2026-01-02T00:00:00Z");
  const all = stretches([{ at: "2025-12-30T00:00:00Z", state: "ready" }, { at: "2026-01-01T12:00:00Z", state: "failed" }, { at: "2026-01-01T18:00:00Z", state: "ready" }], now);
  expect(all).toEqual([{ state: "ready", from: 0, to: 0.5 }, { state: "failed", from: 0.5, to: 0.75 }, { state: "ready", from: 0.75, to: 1 }]);
  expect(shares(all)).toEqual([{ state: "ready", share: 0.75 }, { state: "failed", share: 0.25 }]);
  expect(stretches(undefined, now)).toEqual([]);
});

test("the decisive log line is quoted, and the variable that it names can be set", () => {
  const said = (...texts: string[]) => decisive(texts.map((text) => ({ stream: "stderr" as const, text })))?.text;
  expect(said("CALENDAR_TOKEN is not set", "exiting")).toBe("CALENDAR_TOKEN is not set");
  expect(said("starting", "Error: Missing required environment variable GITHUB_TOKEN", "    at main (/x/index.js:3:9)", "Node.js v22.1.0")).toBe("Error: Missing required environment variable GITHUB_TOKEN");
  expect(said("npm error code E404", "npm error 404 Not Found - GET https://r/nothing - could not be found", "npm error A complete log of this run can be found in: /x")).toBe("npm error 404 Not Found - GET https://r/nothing - could not be found");
  expect(said("Traceback (most recent call last):", '  File "/x.py", line 1, in <module>', "ModuleNotFoundError: No module named 'mcp'")).toBe("ModuleNotFoundError: No module named 'mcp'");
  expect(said("listening", "bye")).toBeUndefined();
  expect(decisive([{ stream: "mcpproxy", text: "not connected: exit status 3" }])).toBeUndefined();
  const names: Record<string, string> = {
    "CALENDAR_TOKEN is not set": "CALENDAR_TOKEN", "Error: environment variable `API_KEY` is required": "API_KEY", "please set OPENAI_API_KEY first": "OPENAI_API_KEY", "DB_URL must be set": "DB_URL",
    "cannot read CALENDAR_TOKEN.json": "", "the port is not set": "",
  };
  for (const [text, name] of Object.entries(names)) expect(variableIn(text), text).toBe(name);
  const end = { stream: "mcpproxy" as const, text: "not connected: the process ended: exit status 3" };
  expect([times({}, []), times({ restarts: 0 }, [end]), times({ restarts: 4 }, [end]), times({}, [end, { stream: "stderr", text: "not connected" }, end, end])]).toEqual(["", "", "5 times", "3 times"]);
});
