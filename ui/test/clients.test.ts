import { expect, test } from "vitest";
import type { Client, Lane, PermissionLane } from "../src/api/types";
import { clientName, diffLines, laneOf, placeOf, profileOf, short, standing } from "../src/lib/clients";
import { clientsOf, heading, rowsOf, sessionName, went, type Session } from "../src/pages/clients/used";
import { bodyOf, newLanes, serverNames, tokenTrouble } from "../src/pages/clients/token";

const client = (id: string, name: string, over: Partial<Client> = {}): Client => ({ id, name, found: true, connected: false, server: "mcpproxy", servers: ["mcpproxy"], surface: "search", path: "/home/me/x.json", transport: "http", foreign: false, broken: [], entry: { path: "/home/me/x.json", text: "{}" }, ...over });
const known = [client("claude-code", "Claude Code", { connected: true }), client("vscode", "VS Code"), client("codex", "Codex"), client("cursor", "Cursor", { found: false }), client("zed", "Zed", { found: false }), client("kiro", "Kiro", { connected: true, foreign: true })];

const session = (s: Partial<Session>): Session => ({ id: "s", first: "2026-11-20T10:00:00Z", last: "2026-11-20T10:00:00Z", actor: "agent", source: "mcp", calls: 1, refused: 0, failed: 0, ...s });

test("clients are the agents' sessions, grouped by name", () => {
  const all = clientsOf([
    session({ client_name: "claude-code", client_version: "2.4.1", calls: 9 }), session({ client_name: "claude-code", client_version: "2.3.0", refused: 1, last: "2026-11-20T12:00:00.5Z" }),
    session({ client_name: "mine", last: "2026-11-20T11:00:00+00:00" }), session({ actor: "admin", client_name: "curl" }), session({ source: "rest", client_name: "Mozilla" }), session({}), session({ actor: "agent:ci", client_name: "claude-code", calls: 3 }),
  ], known);
  expect(all.map((c) => [c.name, c.versions, c.sessions, c.calls, c.refused])).toEqual([["Claude Code", ["2.4.1", "2.3.0"], 3, 13, 1], ["mine", [], 1, 1, 0], ["Unnamed client", [], 1, 1, 0]]);
  expect(all[0]!.last).toBe("2026-11-20T12:00:00.5Z");
});

test("texts of the page", () => {
  expect(heading(4, false)).toBe("4 clients in the last 24 hours");
  expect(heading(1, true)).toBe("At least 1 client in the last 24 hours");
  expect(heading(0, false)).toBe("No clients in the last 24 hours");
  expect(sessionName(session({ client_name: "cursor-vscode", client_version: "3.23" }), known)).toBe("Cursor 3.23");
  expect(sessionName(session({ source: "cli" }), known)).toBe("cli");
  expect(went({ calls: 1, refused: 2, failed: 0 })).toBe("1 call, 2 refused");
});

test("clients by their product names", () => {
  const name = (raw: string) => clientName(raw, known);
  expect(["claude-code", "Visual Studio Code", "codex-mcp-client", "cursor-vscode", "my-agent"].map(name)).toEqual(["Claude Code", "VS Code", "Codex", "Cursor", "my-agent"]);
});

test("rows: connected, recently seen, installed, and missing clients", () => {
  const uses = clientsOf([session({ client_name: "mine" }), session({ client_name: "codex-mcp-client" }), session({})], known);
  const { rows, elsewhere } = rowsOf(known, uses);
  expect(rows.map((r) => [r.name, r.id, r.use?.calls])).toEqual([["Claude Code", "claude-code", undefined], ["Kiro", "kiro", undefined], ["Codex", "codex", 1], ["mine", "", 1], ["Unnamed client", "", 1], ["VS Code", "vscode", undefined]]);
  expect(elsewhere.map((c) => c.id)).toEqual(["cursor", "zed"]);
});

test("the state of a client, the worst first", () => {
  expect([{}, { connected: true }, { connected: true, foreign: true }, { connected: true, missing: "/x" }, { broken: ["x.json: no JSON"] }].map((over) => standing(client("a", "A", over)))).toEqual(["not", "connected", "foreign", "missing", "broken"]);
});

test("the profile of a client's entry", () => {
  const of = (leads_to?: string) => profileOf(client("a", "A", leads_to ? { leads_to } : {}));
  expect([of(), of("http://127.0.0.1:8080/mcp"), of("http://127.0.0.1:8080/mcp/p/web-1/all/read"), of("/bin/mcpproxy stdio --profile web-1 --all"), of("mcpproxy stdio --profile=web-1")]).toEqual([undefined, undefined, "web-1", "web-1", "web-1"]);
});

test("a lane's rule and its position in the file", () => {
  const lane = (tool: string, of?: Lane): PermissionLane => ({ tool, ...(of ? { lane: of } : {}), verdict: "runs", wanted: "asks", right: false, rule: { text: "*", path: "/home/me/.codex/config.toml", line: 3 } });
  const c = client("codex", "Codex", { permissions: { right: false, writable: true, lanes: [lane("retrieve_tools"), lane("mcpproxy-write:*", "write")] } });
  expect(laneOf(c, "write")?.tool).toBe("mcpproxy-write:*");
  expect(laneOf(c, "read")).toBeUndefined();
  expect(placeOf(laneOf(c, "write")!.rule)).toBe("~/.codex/config.toml, line 3");
  expect(placeOf({ text: "by itself" })).toBe("");
  expect(["/root/.x", "/Users/a/.x", "C:\\Users\\a\\x", "/homes/a", "/home/a"].map(short)).toEqual(["~/.x", "~/.x", "~\\x", "/homes/a", "/home/a"]);
});

test("a difference in the form of REST", () => {
  expect(diffLines("  {\n- a\n+ b\n...")).toEqual([{ kind: "same", text: "{" }, { kind: "removed", text: "a" }, { kind: "added", text: "b" }, { kind: "same", text: "..." }]);
});

test("a new token in the form of REST, without members that do not limit it", () => {
  const all = ["read", "write", "destructive"] as const;
  expect(bodyOf({ name: "ci", profile: "", servers: " ", lanes: all, life: "" })).toEqual({ name: "ci" });
  expect(bodyOf({ name: "ci", profile: "p", servers: "git, web-*,git", lanes: ["read"], life: "30d" })).toEqual({ name: "ci", profile: "p", servers: ["git", "web-*"], lanes: ["read"], expires_in: "30d" });
  expect(serverNames("a b,,c")).toEqual(["a", "b", "c"]);
  expect(tokenTrouble("ci", [])).toContain("lane");
  expect(tokenTrouble("", all)).toContain("name");
  expect(tokenTrouble("ci", ["read"])).toBe("");
});

test("a new token has only the read lane until more are selected", () => {
  expect(newLanes).toEqual(["read"]);
});
