import { beforeAll, describe, expect, test, vi } from "vitest";
import type { Finding, PendingCall, Server, Status, Waiting, WaitingTool } from "../src/api/types";

// router.ts reads the address when it is loaded.
let needsOf: typeof import("../src/pages/overview/needs").needsOf;
beforeAll(async () => {
  vi.stubGlobal("location", { pathname: "/ui/overview", search: "", origin: "http://localhost", href: "http://localhost/ui/overview" });
  vi.stubGlobal("addEventListener", () => {});
  ({ needsOf } = await import("../src/pages/overview/needs"));
});

const now = new Date("2026-11-20T15:00:00Z");
const finding = (severity: Finding["severity"], reason: string): Finding => ({ rule: "r", severity, path: "/description", start: 0, end: 1, excerpt: "x", reason });
const tool = (name: string, over: Partial<WaitingTool> = {}): WaitingTool => {
  const [server, own] = name.split(":") as [string, string];
  return { name, server, tool: own, reason: "new", fingerprint: "f", verdict: "clean", findings: [], lane: "read", ...over };
};
const waiting = (tools: WaitingTool[], over: Partial<Waiting> = {}): Waiting => {
  const all = [...tools, ...(over.offers ?? [])];
  const open = all.filter((d) => d.reason !== "blocked");
  return {
    servers: [], tools, total_tools: tools.length, offers: [], total_offers: 0, total_blocked: all.length - open.length,
    total_findings: open.filter((d) => d.findings.length > 0).length, total_poisoned: open.filter((d) => d.verdict === "block").length, ...over,
  };
};
const server = (name: string, over: Partial<Server> = {}): Server => ({ name, protocol: "stdio", enabled: true, quarantined: false, state: "ready", tool_count: 3, ...over });
const said = (bits: readonly unknown[]) => bits.map((b) => (typeof b === "string" ? b : (b as { code?: string }).code ?? [(b as { server: string }).server, (b as { tool?: string }).tool].filter(Boolean).join(":"))).join("");

describe("needsOf", () => {
  test("a secret that is missing", () => {
    const [need] = needsOf(waiting([]), [server("gh", { state: "needs_secret", last_error: "it needs the secret GITHUB_TOKEN" })], undefined, now);
    expect([said(need!.title), said(need!.text)]).toEqual(["gh needs a secret", "it needs the secret GITHUB_TOKEN"]);
  });

  test("a variable that is not set", () => {
    const gh = (name: string) => server(name, { state: "needs_variable", last_error: "it needs the environment variable GH_HOST" });
    const [need] = needsOf(waiting([]), [gh("gh")], undefined, now);
    expect([said(need!.title), said(need!.text), need!.act.href]).toEqual(["gh needs a variable", "it needs the environment variable GH_HOST", "/ui/servers?id=gh"]);
    expect(needsOf(waiting([]), [gh("a"), gh("b"), gh("c"), gh("d")], undefined, now).map((n) => said(n.title))).toEqual(["4 servers need a variable"]);
  });

  test("packages that cannot be downloaded now", () => {
    const npx = (name: string) => server(name, { state: "connecting", step: "installing", trouble: "registry.example cannot be reached, is the network down?" });
    const [need] = needsOf(waiting([]), [npx("gh")], undefined, now);
    expect([said(need!.title), said(need!.text), need!.act.href]).toEqual(["gh cannot be downloaded", "registry.example cannot be reached, is the network down?", "/ui/servers?id=gh"]);
    const [all] = needsOf(waiting([]), ["a", "b", "c"].map(npx), undefined, now);
    expect([said(all!.title), said(all!.text).includes("b: registry.example cannot be reached")]).toEqual(["3 servers cannot be downloaded", true]);
  });

  test("configuration changes that grant more access", () => {
    const [need, ...more] = needsOf(waiting([]), [], { unconfirmed: 2, activity: {} } as unknown as Status, now);
    expect([said(need!.title), said(need!.text), need!.act.label, more]).toEqual(["2 configuration changes need confirmation", "They grant more access. If you made them, confirm them in a terminal: mcpproxy config confirm.", "View", []]);
    expect(needsOf(waiting([]), [], { activity: {} } as unknown as Status, now)).toEqual([]);
  });

  test("the most severe problem first", () => {
    const w = waiting([tool("a:x"), tool("a:bad", { reason: "changed", verdict: "block", findings: [finding("review", "hides"), finding("block", "takes files")], since: "2026-11-20T14:00:00Z" })], {
      servers: [{ name: "new", stage: "launch", fingerprint: "f", proposed_by: "agent", client_name: "Claude Code", launch: { protocol: "stdio", command: "npx", args: ["-y", "x y"] }, tool_count: 0, offer_count: 0, findings: 0 }],
    });
    const all = needsOf(w, [server("k", { state: "failed", last_error: "no file.", restarts: 3, retry_at: "2026-11-20T15:00:38Z" }), server("n", { state: "needs_login", tool_count: 24 }), server("off", { enabled: false, state: "failed" })], undefined, now);
    expect(all.map((n) => said(n.title))).toEqual(["a:bad changed", "new was proposed", "k keeps failing", "n needs a login", "a:x is new"]);
    expect(all.map((n) => said(n.text))).toEqual([
      "Its new text “takes files” and “hides”.",
      "Proposed by Claude Code: npx -y 'x y'. It has not been started.",
      "Failed 4 times: no file. Next retry in 38 s.",
      "Calls to its 24 tools fail with LOGIN_NEEDED.",
      "Agents cannot use it until you approve it.",
    ]);
    expect(all[0]!.act.href).toBe("/ui/approvals?id=a:bad");
  });

  test("pending calls come first, with their age", () => {
    const call = (id: string, over: Partial<PendingCall> = {}): PendingCall => ({
      id, state: "waiting", name: "n:x", server: "n", tool: "x", lane: "write", lane_reason: "the tool's hints declare it", tool_variant: "call_tool_write", rule: "ask.write", arguments: {}, actor: "agent", client_name: "Cursor", source: "mcp",
      asked_at: "2026-11-20T14:59:00Z", last_asked_at: "2026-11-20T14:59:00Z", until: "2026-11-20T15:14:00Z", activity_id: "01A", ...over,
    });
    const poisoned = waiting([tool("a:bad", { reason: "changed", verdict: "block" })]);
    const [first, second] = needsOf(poisoned, [server("s")], undefined, now, [call("q1")]);
    expect([said(first!.title), said(first!.text), first!.act.href, first!.call?.id]).toEqual(["n:x needs approval", "Cursor called it. Lane: write, because the tool's hints declare it.", "/ui/approvals?kind=call&id=q1", "q1"]);
    expect(said(second!.title)).toBe("a:bad changed");
    const many = needsOf(poisoned, [server("s")], undefined, now, ["q1", "q2", "q3", "q4"].map((id) => call(id, id === "q2" ? { tool: "y" } : {})));
    expect([said(many[0]!.title), said(many[0]!.text), many[0]!.call?.id, many.length]).toEqual(["4 calls need approval", "n:x, n:y, n:x and 1 more. They are held until you approve.", "q1", 2]);
    expect(said(needsOf(waiting([]), [], undefined, now, [call("q", { client_name: undefined, actor: "agent:ci" })])[0]!.text)).toMatch(/^agent ci called it/);
  });

  test("three items of a kind share one row", () => {
    const servers = ["a", "b", "c", "d"].map((n) => server(n, { state: "failed" }));
    const all = needsOf(waiting([tool("s:a"), tool("s:b", { loosened: ["destructiveHint"] }), tool("s:c", { findings: [finding("note", "is long")], verdict: "review", since: "2026-11-20T13:00:00Z" })]), servers, undefined, now);
    expect(all.map((n) => said(n.title))).toEqual(["4 servers failed", "3 definitions need review"]);
    expect(said(all[0]!.text)).toBe("a, b, c and 1 more.");
    expect(said(all[1]!.text)).toBe("1 with findings; s:b is no longer marked destructive.");
    expect(all[1]!.since).toBe("2026-11-20T13:00:00Z");
  });

  test("refused items need no attention, and items that the list omits are counted", () => {
    expect(needsOf(waiting([tool("s:a", { reason: "blocked", verdict: "block" })]), [server("s")], undefined, now)).toEqual([]);
    const all = needsOf(waiting([tool("s:a")], { total_tools: 700 }), [server("s")], undefined, now);
    expect(all.map((n) => said(n.title))).toEqual(["700 definitions need review"]);
    const page = Array.from({ length: 500 }, (_, i) => tool(`s:t${i}`, { verdict: "review", findings: [finding("review", "hides")] }));
    const rest = needsOf(waiting(page, { total_tools: 10_000, total_findings: 1_204, total_poisoned: 4, total_blocked: 6 }), [server("s")], undefined, now);
    expect(rest.map((n) => [said(n.title), said(n.text)])).toEqual([["9,990 definitions need review", "1,200 with findings."]]);
  });

  test("a row for many items names the reasons", () => {
    const failed = (name: string, last_error: string) => server(name, { state: "failed", last_error });
    const [all] = needsOf(waiting([]), [failed("a", "TOKEN is not set."), failed("b", "command not found: uvx"), failed("c", ""), failed("d", "x")], undefined, now);
    expect([said(all!.title), said(all!.text)]).toEqual(["4 servers failed", "a: TOKEN is not set; b: command not found: uvx; c; and 1 more."]);
  });

  test("a changed log comes first", () => {
    const status = { activity: { degraded: false, records: 3, verified: { at: "2026-11-20T14:00:00Z", ok: false } } } as never;
    expect(said(needsOf(waiting([tool("s:a")]), [], status, now)[0]!.title)).toBe("The activity log failed verification");
  });
});
