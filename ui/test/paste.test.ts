import { expect, test } from "vitest";
import type { FoundServer, ParsedServer, SecretView } from "../src/api/types";
import { byFile, marks, tally } from "../src/lib/found";
import { clearOf, needed } from "../src/lib/secrets";
import { bodyOf, commandLine, keep, nameTrouble, takes, words } from "../src/lib/paste";

const pasted: ParsedServer = {
  name: "github", exists: false, notes: [], launch: { protocol: "stdio", command: "npx", args: ["-y", "server"], env: ["GITHUB_TOKEN"] },
  add: { name: "github", command: "npx", args: ["-y", "--key=abc"], env: { GITHUB_TOKEN: "ghp_x", HOME: "/h" } },
  secrets: [
    { place: "env", name: "GITHUB_TOKEN", kind: "github-token", suggestion: "${env:GITHUB_TOKEN}" },
    { place: "args", name: "1", kind: "secret", suggestion: "--key=${env:GITHUB_KEY}" },
  ],
};

const taken = () => new Map<string, string | undefined>();

test("a secret goes into the keyring, unless the user wants it in the file", () => {
  const kept = keep(pasted, {}, taken());
  expect([...kept.values()]).toEqual([{ name: "GITHUB_TOKEN", value: "ghp_x", text: "${keyring:GITHUB_TOKEN}" }, { name: "GITHUB_KEY", value: "abc", text: "--key=${keyring:GITHUB_KEY}" }]);
  expect(bodyOf(pasted, { name: "gh" }, kept)).toEqual({ name: "gh", command: "npx", args: ["-y", "--key=${keyring:GITHUB_KEY}"], env: { GITHUB_TOKEN: "${keyring:GITHUB_TOKEN}", HOME: "/h" } });
  expect(bodyOf(pasted, {}, keep(pasted, { plain: ["env GITHUB_TOKEN", "args 1"] }, taken()))).toEqual(pasted.add);
  expect((pasted.add.env as Record<string, string>).GITHUB_TOKEN).toBe("ghp_x"); // the parsed object is not modified
});

test("no secret overwrites another one, and one value has one name", () => {
  const names = (t: Map<string, string | undefined>, server = pasted) => [...keep(server, {}, t).values()].map((k) => k.name);
  expect(names(new Map([["GITHUB_TOKEN", undefined]]))).toEqual(["github_GITHUB_TOKEN", "GITHUB_KEY"]);
  expect(names(new Map([["GITHUB_TOKEN", undefined], ["github_GITHUB_TOKEN", undefined]]))).toEqual(["github_GITHUB_TOKEN_3", "GITHUB_KEY"]);
  const all = taken();
  expect([names(all), names(all, { ...pasted, name: "second" })]).toEqual([["GITHUB_TOKEN", "GITHUB_KEY"], ["GITHUB_TOKEN", "GITHUB_KEY"]]);
  const other = { ...pasted, name: "other", add: { ...pasted.add, env: { GITHUB_TOKEN: "ghp_y" } } };
  expect(names(all, other)).toEqual(["other_GITHUB_TOKEN", "GITHUB_KEY"]);
});

test("a secret is separated from the text around it; other values stay", () => {
  expect(clearOf("Bearer abc", "Bearer ${env:T}")).toEqual({ value: "abc", before: "Bearer ", after: "", name: "T" });
  expect(clearOf("https://x/?k=abc&z=1", "https://x/?k=${env:X_K}&z=1")).toMatchObject({ value: "abc" });
  expect(clearOf("abc", "${env:1-x y}")).toMatchObject({ name: "_1-x_y" });
  for (const [value, suggestion] of [["abc", "Bearer ${env:T}"], ["Bearer ", "Bearer ${env:T}"], ["a:b", "${env:A}:${env:B}"], ["abc", "plain"], [undefined, "${env:T}"]] as const) expect(clearOf(value, suggestion)).toBeUndefined();
});

test("which secrets are needed", () => {
  const all: SecretView[] = [{ name: "a", state: "set", used_by: ["s"] }, { name: "b", state: "missing", used_by: ["s", "t"] }, { name: "c", state: "locked", used_by: ["t"] }, { name: "d", state: "missing", used_by: [] }];
  expect([needed(all, "s"), needed(all, "t"), needed(all)].map((x) => x.map((s) => s.name))).toEqual([["b"], ["b", "c"], ["b", "c"]]);
});

test("found servers: duplicates, pasted, already configured, MCPProxy itself", () => {
  const one = (id: string, over: Partial<FoundServer> = {}): FoundServer => ({ id, client: "cursor", client_name: "Cursor", path: "/home/me/.cursor/mcp.json", scope: "user", name: id, called: id, launch: { command: "npx", args: [id] }, secrets: [], have: false, ours: false, notes: [], ...over });
  const all = marks([one("a"), one("b", { client: "codex", client_name: "Codex", path: "/c", name: "a" }), one("c"), one("d", { have: true }), one("e", { ours: true })], ["npx c"]);
  expect(all.map((m) => [m.server.id, m.why, m.again, m.have])).toEqual([["a", "", false, false], ["b", "", true, false], ["c", "already pasted", false, false], ["d", "already added", false, true]]);
  expect(byFile(all).map((g) => [g.name, g.marks.length])).toEqual([["Cursor", 3], ["Codex", 1]]);
  expect(tally({ found: all.map((m) => m.server), broken: [] })).toBe("2 clients, 4 servers");
});

test("a command line has the form that a user types, and is parsed back", () => {
  const argv = ["sh", "-c", "echo 'a  b' \"c\" $X \\", "", "--x=~/y", "a\u00a0b"];
  const line = commandLine({ command: argv[0]!, args: argv.slice(1) });
  expect(line).toMatch(/^sh -c '/);
  expect(words(line)).toEqual(argv);
  expect(words(`npx -y "a \\"b\\"" c\\ d  `)).toEqual(["npx", "-y", 'a "b"', "c d"]);
  expect(() => words("npx 'a")).toThrow("Missing closing");
  expect(commandLine({ url: "https://x/mcp" })).toBe("https://x/mcp");
});

test("names are not case-sensitive", () => {
  expect(nameTrouble("GitHub", ["github"])).toContain("github");
  expect(nameTrouble("", [])).not.toBe("");
  expect(nameTrouble("a", ["b"])).toBe("");
});

test("the variables and headers of a launch", () => {
  expect(takes({ env: ["A", "B"], headers: [], working_dir: "/tmp" })).toEqual(["env A, B", "in /tmp"]);
  expect(takes({ env: { A: "1" }, headers: { Authorization: "[masked]" } })).toEqual(["env A=1", "headers Authorization: [masked]"]);
});
