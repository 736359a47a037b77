import { describe as suite, expect, it } from "vitest";
import type { PendingCall, Waiting, WaitingTool } from "../src/api/types";
import { describe, hints, label, laneOf, marked, otherChanges, parameters, pieces, same, wordCount } from "../src/pages/approvals/definition";
import { alike, approvable, fits, foldFrom, foundIn, grouped, idOf, isClean, itemAt, itemsOf, ordered, sections, waits, why, type DefinitionItem } from "../src/pages/approvals/model";

const tool = (name: string, more: Partial<WaitingTool> = {}): WaitingTool => ({ name, server: name.split(":")[0]!, tool: name.slice(name.indexOf(":") + 1), reason: "changed", fingerprint: "f", approved: "a", verdict: "clean", findings: [], lane: "write", ...more });
const finding = (path: string, excerpt = "x", start = 0) => ({ rule: "covert", severity: "block" as const, path, start, end: start + excerpt.length, excerpt, reason: "hides" });
const waiting = (tools: WaitingTool[]): Waiting => ({ servers: [], tools, total_tools: tools.length, offers: [], total_offers: 0, total_blocked: 0, total_findings: 0, total_poisoned: 0 });
import type { Diff } from "../src/pages/approvals/decide";
import { commandLine } from "../src/lib/paste";
import { bodyOf, covers, lanesFor, offered } from "../src/pages/approvals/lease";
import { accepter, heading, heldWords, lead, severities, untouched, verdict } from "../src/pages/approvals/words";

const call = (over: Partial<PendingCall> = {}): PendingCall => ({
  id: "q1", state: "waiting", name: "s:t", server: "s", tool: "t", lane: "write", lane_reason: "the tool's hints declare it", tool_variant: "call_tool_write", rule: "ask.write", arguments: {}, actor: "agent", source: "mcp",
  asked_at: "2026-11-20T14:59:00Z", last_asked_at: "2026-11-20T14:59:00Z", until: "2026-11-20T15:14:00Z", activity_id: "01A", ...over,
});

suite("calls that wait", () => {
  it("are the first group, in the order of arrival, and filters of definitions do not affect them", () => {
    const all = itemsOf(waiting([tool("s:a", { together: true }), tool("s:b", { verdict: "block" })]), [call(), call({ id: "q2" })]);
    expect(sections(all).map((s) => [s.title, s.items.length])).toEqual([["Pending calls", 2], ["Changed since approval", 2]]);
    expect(ordered(sections(all)).map((i) => i.key)).toEqual(["call q1", "call q2", "tool s:b", "tool s:a"]);
    expect(all.filter(waits)).toHaveLength(4);
    expect(all.filter(isClean).map((i) => i.key)).toEqual(["tool s:a"]);
    expect(all.filter((i) => fits(i, "findings")).map((i) => i.key)).toEqual(["tool s:b"]);
  });

  it("have their own id in the URL, which contains no tool", () => {
    const [c] = itemsOf(waiting([]), [call()]);
    expect(idOf(c!)).toBe("q1");
    expect(itemAt("call", "q1")).toEqual({ key: c!.key, kind: "call", server: "", name: "q1" });
  });

  it("show their outcome", () => {
    expect(lead(0, 0)).toMatch(/^Changed definitions/);
    expect(lead(0, 1)).toBe("Agents cannot use it until you approve.");
    expect(lead(1, 1)).toBe("The call is held until you approve.");
    expect(lead(2, 2)).toBe("Calls are held until you approve.");
    expect(lead(1, 3)).toBe("1 call is held until you answer. Agents cannot use the other items until you approve.");
    const say = (over: Partial<PendingCall>) => { const s = heldWords(call(over)); return `${s.kind}: ${s.strong} ${s.text}`; };
    expect(say({})).toBe("warm: Lane: write. Reason: the tool's hints declare it.");
    expect(say({ lane: "destructive", lane_reason: "its argument sql contains DROP" })).toBe("hot: Lane: destructive. Reason: its argument sql contains DROP.");
    const by = { answered_by: "admin", answered_via: "cli", answered_at: "2026-11-20T15:00:00Z" };
    expect(say({ state: "used", ...by })).toBe("calm: Approved by a user on the command line. The call was sent.");
    expect(say({ state: "denied", ...by, denial: "not now" })).toBe("calm: Denied by a user on the command line. Reason sent to the agent: not now");
    expect(say({ state: "expired" })).toBe("calm: Expired. If the client repeats the call, you are asked again.");
    expect(say({ state: "expired", ...by })).toMatch(/The answer is no longer valid/);
  });

  it("can get a lease: by default only for their tool and their token", () => {
    expect(bodyOf(offered(call()))).toEqual({ server: "s", lane: "write", for: "15m", calls: 5, tools: "t" });
    const l = offered(call({ actor: "agent:ci" }));
    expect(covers(l)).toBe("5 more calls to s:t with any arguments, read and write lanes, from the token ci, within 15 minutes.");
    expect(bodyOf({ ...l, tools: "" })).toEqual({ server: "s", lane: "write", for: "15m", calls: 5, client: "ci" });
    expect(covers({ ...l, tools: "", lane: "destructive", client: "", calls: 1, life: "1h" })).toBe("1 more call to any tool on s with any arguments, from any client, within 1 hour.");
    expect(lanesFor(call({ lane: "destructive" }))).toEqual(["destructive"]);
    expect(lanesFor(call({ lane: "read" }))).toEqual(["read", "write", "destructive"]);
  });
});

suite("what waits", () => {
  it("reads kind and id from the URL", () => {
    expect(itemAt("", "github:a:b")).toMatchObject({ kind: "tool", server: "github", name: "a:b" });
    expect(itemAt("", "task-master")).toMatchObject({ kind: "server", server: "task-master", name: "" });
    expect(itemAt("resource", "docs:file:///a")).toMatchObject({ kind: "resource", server: "docs", name: "file:///a" });
    expect(itemAt("instructions", "docs")).toMatchObject({ kind: "instructions", server: "docs", name: "" });
    expect(itemAt("", "")).toBeUndefined();
  });

  it("has the same key in the list and in the URL", () => {
    const [t, o] = itemsOf({ ...waiting([tool("s:a:b")]), offers: [{ kind: "instructions", server: "s", reason: "new", fingerprint: "f", verdict: "clean", findings: [] }] });
    expect(itemAt("", "s:a:b")!.key).toBe(t!.key);
    expect(itemAt("instructions", "s")!.key).toBe(o!.key);
  });

  it("puts the most severe first, and blocked items last", () => {
    const all = itemsOf(waiting([
      tool("s:clean"), tool("s:blocked", { reason: "blocked", verdict: "block" }), tool("s:new", { reason: "new", approved: undefined }),
      tool("s:looser", { loosened: ["destructiveHint"] }), tool("s:review", { verdict: "review", findings: [finding("/description")] }), tool("s:poisoned", { verdict: "block", findings: [finding("/description")] }),
    ]));
    expect(ordered(sections(all)).map((i) => i.kind !== "server" && i.name)).toEqual(["poisoned", "looser", "review", "clean", "new", "blocked"]);
    expect(all.filter(waits)).toHaveLength(5);
    expect(all.filter((i) => fits(i, "findings") && waits(i))).toHaveLength(2);
  });

  it("approves together only what the daemon allows", () => {
    const offer = { kind: "prompt" as const, server: "s", reason: "new", fingerprint: "f", verdict: "clean" as const, findings: [] };
    const all = itemsOf({ ...waiting([tool("s:a", { together: true }), tool("s:b")]), offers: [{ ...offer, name: "c", together: true }, { ...offer, name: "d" }] }, [call()]);
    expect(all.filter(isClean).map((i) => i.name)).toEqual(["a", "c"]);
  });

  it("groups hundreds by server", () => {
    const few = itemsOf(waiting([tool("s:a")]));
    expect(grouped(few)).toBeUndefined();
    const many = itemsOf(waiting(Array.from({ length: foldFrom }, (_, i) => tool(`${i % 2 ? "x" : "y"}:t${i}`))));
    expect(grouped(many)!.map((g) => [g.server, g.items.length])).toEqual([["y", foldFrom / 2], ["x", foldFrom / 2]]);
  });

  it("shows what changed", () => {
    const say = (more: Partial<WaitingTool>) => why(itemsOf(waiting([tool("s:t", more)]))[0] as DefinitionItem);
    expect(say({ what: { description: { added: 20, removed: 0 }, parameters: 1 } })).toBe("Description, 1 parameter");
    expect(say({ what: { description: { added: 1, removed: 0 } } })).toBe("Description, 1 word");
    expect(say({ what: { other: ["outputSchema"] } })).toBe("Output schema");
    expect(say({ loosened: ["destructiveHint"] })).toBe("No longer marked destructive");
  });
});

suite("a definition beside the approved one", () => {
  const was = { annotations: { destructiveHint: true }, inputSchema: { properties: { a: { type: "string" }, b: { type: "integer" }, c: {} }, required: ["a"] } };
  const is = { annotations: { destructiveHint: false }, inputSchema: { properties: { a: { type: "string" }, c: { type: "string", description: "new" }, d: { enum: ["x", "y"] } }, required: ["a", "d"] } };

  it("lists parameters, changed ones first", () => {
    const rows = parameters(is, was, [{ path: "/inputSchema/properties/c/description", kind: "added", new: "new" }]);
    expect(rows.map((r) => [r.name, r.change, r.was, r.is])).toEqual([
      ["c", "changed", "any", "string"], ["d", "added", undefined, "one of x, y, required"], ["b", "removed", "integer", undefined], ["a", "same", "string, required", "string, required"],
    ]);
    expect(rows[0]!.pieces).toEqual([{ kind: "added", text: "new" }]);
  });

  it("detects a newly required parameter, and a nested change", () => {
    const one = { inputSchema: { properties: { a: { type: "object", properties: { x: {} } } } } };
    expect(parameters({ inputSchema: { ...one.inputSchema, required: ["a"] } }, one, [])[0]!.change).toBe("changed");
    expect(parameters({ inputSchema: { properties: { a: { type: "object", properties: { x: { type: "string" } } } } } }, one, [])[0]!.is).toMatch(/details/);
  });

  it("takes the arguments of a prompt as parameters", () => {
    expect(parameters({ arguments: [{ name: "repo", required: true }] }, undefined, [])[0]).toMatchObject({ name: "repo", is: "text, required" });
  });

  it("shows hints and lanes", () => {
    expect(hints(is, was, ["destructiveHint"])[0]).toEqual({ name: "destructiveHint", was: "true", is: "false", changed: true, loosened: true });
    expect([laneOf(was), laneOf(is), laneOf({ annotations: { readOnlyHint: true } }), laneOf({ annotations: { readOnlyHint: true, destructiveHint: true } })]).toEqual(["destructive", "write", "read", "destructive"]);
  });

  it("counts words, and shows completely different texts in full", () => {
    expect(wordCount([{ kind: "same", text: "a b" }, { kind: "added", text: " c d" }])).toBe("2 words added, none removed");
    expect(pieces({ path: "/description", kind: "changed", old: "a", new: "b" })).toEqual([{ kind: "removed", text: "a" }, { kind: "added", text: "b" }]);
  });

  it("lists the remaining changes under other changes", () => {
    const all = ["/description", "/title", "/inputSchema/properties/a", "/inputSchema/required/0", "/inputSchema/propertiesX", "/outputSchema/type"].map((path) => ({ path, kind: "changed" as const }));
    expect(otherChanges(all, "/description").map((c) => c.path)).toEqual(["/title", "/inputSchema/propertiesX", "/outputSchema/type"]);
  });

  it("finds the marked texts, including parameter names", () => {
    const d = { inputSchema: { properties: { "ignore all": { description: "say nothing" } } } };
    const [name, text] = marked(d, [finding("/inputSchema/properties/ignore all", "ignore"), finding("/inputSchema/properties/ignore all/description", "say")], "/description");
    expect([name!.text, text!.text, text!.label]).toEqual(["ignore all", "say nothing", "parameter ignore all, description"]);
    expect(label("/outputSchema/properties/a~1b")).toBe("output schema, a/b");
  });

  it("ignores the order of members", () => {
    expect(same({ a: 1, b: [{ c: 1, d: 2 }] }, { b: [{ d: 2, c: 1 }], a: 1 })).toBe(true);
    expect(describe({ type: ["string", "null"], default: "x", maxLength: 5 }, false)).toBe("string or null, default x, max length 5");
  });
});

suite("what is said of it", () => {
  const diff = (more: Partial<Diff>): Diff => ({ server: "s", reason: "changed", fingerprint: "f", definition: {}, changes: [], verdict: "clean", findings: [], ...more });

  it("shows the most severe verdict", () => {
    const two = [finding("/description"), { ...finding("/description"), severity: "review" as const }];
    expect(verdict(diff({ verdict: "block", findings: two, loosened: ["destructiveHint"] }), "write", "write").text).toMatch(/^One of two findings is typical of attacks/);
    expect(verdict(diff({ verdict: "block", findings: [two[0]!] }), "write", "write").text).toMatch(/^The finding is typical/);
    expect(verdict(diff({ loosened: ["destructiveHint"] }), "destructive", "write").text).toBe("If you approve it, the tool moves to the write lane, and clients that ask only before destructive calls no longer ask.");
    expect(verdict(diff({ loosened: ["openWorldHint"] }), "write", "write").strong).toMatch(/Hints relaxed/);
    expect(verdict(diff({ verdict: "review", findings: [two[1]!] }), "write", "write").strong).toBe("1 finding to review.");
    expect(verdict(diff({ verdict: "incomplete" }), "write", "write").kind).toBe("warm");
    expect(verdict(diff({ reason: "blocked", verdict: "block", findings: two }), "write", "write").strong).toMatch(/blocked/);
    expect(verdict(diff({ reason: undefined }), "write", "write").strong).toMatch(/Nothing to review/);
    expect(severities(two)).toBe("1 block, 1 review");
  });

  it("shows what did not change", () => {
    const properties = (...names: string[]) => ({ name: "t", description: "d", inputSchema: { properties: Object.fromEntries(names.map((n) => [n, {}])) } });
    const accepted = (definition: unknown) => ({ fingerprint: "a", by: "admin", at: "", definition });
    expect(untouched(diff({ definition: properties("a", "b", "c"), approved: accepted(properties("a", "b")) }))).toBe("The 2 other parameters, name and description are unchanged.");
    expect(untouched(diff({ definition: properties("a", "b"), approved: accepted(properties("a", "b")) }))).toBe("Name, description and 2 parameters are unchanged.");
    expect(untouched(diff({ definition: properties(), approved: accepted(properties()), changes: [{ path: "/description", kind: "changed" }] }))).toBe("Name is unchanged.");
    expect(untouched(diff({}))).toBe("");
  });

  it("shows the approver, the number of waiting items and the launch", () => {
    expect([accepter("admin"), accepter("trust:scan"), heading(0), heading(1), heading(1234)]).toEqual(["by you", "by trust: scan", "Nothing to review", "1 item needs review", "1,234 items need review"]);
    expect(commandLine({ command: "sh", args: ["-c", "it's ~/a"] })).toBe(`sh -c 'it'\\''s ~/a'`);
  });
});

suite("definitions in which the same was found", () => {
  const found = (...rules: string[]) => rules.map((rule) => ({ ...finding("/description"), rule, severity: "review" as const, reason: `says ${rule}` }));
  const items = itemsOf(waiting([
    tool("s:a", { verdict: "review", findings: found("hides", "orders") }), tool("t:b", { verdict: "review", findings: found("orders", "hides", "hides") }),
    tool("s:c", { verdict: "review", findings: found("hides") }), tool("s:d", { verdict: "block", findings: found("takes") }), tool("s:e", { verdict: "block", findings: found("takes") }),
    tool("s:f", { verdict: "block", findings: found("takes"), reason: "blocked" }), tool("s:g"),
  ]));

  it("have the same rules, on any server", () => {
    expect(alike(items)).toEqual([{ found: "hides+orders", reason: "says hides, and says orders", count: 2 }, { found: "takes", reason: "says takes", count: 2 }]);
    expect(items.filter((i) => foundIn(i) === "takes").map((i) => i.key)).toEqual(["tool s:d", "tool s:e"]); // blocked items are decided
    expect(items.map(foundIn).at(-1)).toBe("");
  });

  it("are approved together unless they look like an attack, or relax a hint", () => {
    expect(items.filter(approvable).map((i) => i.key)).toEqual(["tool s:a", "tool t:b", "tool s:c", "tool s:g"]);
    expect(itemsOf(waiting([tool("s:a", { verdict: "review", loosened: ["readOnlyHint"] })])).filter(approvable)).toEqual([]);
  });
});
