import { expect, test } from "vitest";
import { argumentsOf, entriesOf, fields } from "../src/pages/tools/form";
import { choicesOf, hintRows, override } from "../src/pages/tools/hints";
import { foundWords, how, marked, signatureParts, summary } from "../src/pages/tools/marked";
import { entries, orderParams, orderWords, params, sentence, split, word } from "../src/pages/tools/query";
import { changesOf, formOf } from "../src/pages/tools/settings";
import { ranked } from "../src/lib/ranked";
import type { Tool } from "../src/api/types";

const schema = {
  type: "object", required: ["repo", "number"],
  properties: {
    body: { type: "string" }, labels: { type: "array", items: { type: "string" } }, state: { enum: ["open", "closed", 3] }, number: { type: "integer" }, repo: { type: "string", description: "Which" },
    weight: { type: ["number", "null"] }, lock: { anyOf: [{ type: "boolean" }, { type: "null" }], default: null }, meta: { type: "object" }, many: { type: "array", items: { type: "object" } },
  },
};

test("a schema becomes fields, required ones first", () => {
  const all = fields(schema)!;
  expect(all.map((f) => `${f.name} ${f.kind}`)).toEqual(["number integer", "repo text", "body long", "labels strings", "state enum", "weight number", "lock boolean", "meta json", "many json"]);
  expect(all[1]).toMatchObject({ required: true, description: "Which" });
  expect(fields(undefined)).toEqual([]);
  expect(fields({ type: "object" })).toEqual([]);
});

test.each([
  [{ oneOf: [] }], [{ $ref: "#/x" }], ["text"], [null], [true], [{ type: "array" }], [{ type: "object", required: ["x"] }], [{ type: "object", additionalProperties: true }],
  [{ type: "object", properties: Object.fromEntries(Array.from({ length: 300 }, (_, i) => ["p" + i, {}])) }],
])("%j is for JSON alone", (s) => expect(fields(s)).toBeUndefined());

test("entries become arguments, and mistakes are named", () => {
  const all = fields(schema)!;
  expect(argumentsOf(all, { repo: "a", number: " 12 ", labels: "x\n\ny z\n", state: "2", weight: "-1.5e2", lock: "false", meta: '{"a": [1]}', body: "  " })).toEqual({
    args: { number: 12, repo: "a", labels: ["x", "y z"], state: 3, weight: -150, lock: false, meta: { a: [1] } }, mistakes: {},
  });
  const { mistakes } = argumentsOf(all, { number: "1.5", weight: "0x10", meta: "{" });
  expect(Object.keys(mistakes)).toEqual(["number", "repo", "weight", "meta"]);
  expect(argumentsOf(all, { repo: "a", number: "9007199254740993" }).mistakes.number).toMatch("too large");
  expect(Object.keys(argumentsOf(fields(JSON.parse('{"properties":{"__proto__":{"type":"string"}}}'))!, JSON.parse('{"__proto__":"x"}')).args)).toEqual(["__proto__"]);
});

test("arguments become entries when the form can hold them", () => {
  const all = fields(schema)!;
  const args = { number: 12, repo: "a", labels: ["x", "y"], state: "closed", lock: true, meta: { a: 1 } };
  expect(argumentsOf(all, entriesOf(all, args)!).args).toEqual(args);
  for (const v of [[1], { other: 1 }, { state: "no" }, { labels: [1] }, { labels: ["a\nb"] }, { number: 1.5 }, { repo: "" }, { lock: null }]) expect(entriesOf(all, v)).toBeUndefined();
});

test("the matched words of a tool", () => {
  const found = foundWords([{ found: ["issue", "Open"] }, { found: ["é"] }]);
  expect(marked("Open an issue, not issues.", found)).toEqual([{ text: "Open", mark: true }, { text: " an ", mark: false }, { text: "issue", mark: true }, { text: ", not issues.", mark: false }]);
  expect(marked("", found)).toEqual([]);
  expect(summary("  One.\nTwo.")).toBe("One.");
  expect(summary("x".repeat(500))).toHaveLength(241);
  expect(how({ how: "synonym", fields: ["name", "parameter"] })).toBe("synonym, in name, parameters");
  expect(how({ how: "used", fields: [] })).toBe("called after similar searches");
});

test("a signature shows required parameters", () => {
  const of = (s: string) => signatureParts(s).filter((p) => p.mark).map((p) => p.text);
  const whole = 'f(a: string, b?: {x: number, y: string}, c: "a, d: e"|"\\" g: (", h: string[] = ["i: j"], k?: Map<l, m>)';
  expect(of(whole)).toEqual(["a", "c", "h"]);
  expect(signatureParts(whole).map((p) => p.text).join("")).toBe(whole);
  expect(of("f()")).toEqual([]);
  expect(of("f(…)")).toEqual([]);
});

test("hints: their source, and corrections keep existing overrides", () => {
  expect(hintRows({ annotations: { readOnlyHint: false, destructiveHint: true }, declared_annotations: { readOnlyHint: true }, corrected_annotations: { readOnlyHint: false } })).toEqual([
    { name: "readOnlyHint", said: true, counts: false, from: "you" }, { name: "destructiveHint", said: undefined, counts: true, from: "guess" },
  ]);
  const before = { "*": { openWorldHint: false }, x: { destructiveHint: true }, "y*": { readOnlyHint: true } };
  const choices = { ...choicesOf(before, "x"), readOnlyHint: "false" as const, destructiveHint: "" as const };
  const after = override(before, "x", choices)!;
  expect(Object.entries(after)).toEqual([["*", { openWorldHint: false }], ["y*", { readOnlyHint: true }], ["x", { readOnlyHint: false }]]);
  expect(override({ x: { readOnlyHint: true } }, "x", choicesOf({}, "x"))).toBeNull();
  expect(override(undefined, "x", { ...choicesOf({}, "x"), idempotentHint: "true" })).toEqual({ x: { idempotentHint: true } });
});

test("filters", () => {
  const q = { q: "", id: "", lane: "write", status: "callable", hints: "", use: "never", server: "git", sort: "" } as const;
  expect(params(q)).toEqual({ operation_type: "write", status: "callable", hints: "", use: "never", server: "git" });
  expect(sentence(q)).toBe("Lane is write, and status is callable, and use is never, and server is git.");
  expect(entries("lane", { destructive: 1, read: 2 }, "write")).toEqual([["read", 2], ["write", 0], ["destructive", 1]]);
  expect(entries("server", { b: 1, a: 1, c: 5 }, "").map((e) => e[0])).toEqual(["c", "a", "b"]);
  expect(split("a:b:c")).toEqual({ server: "a", tool: "b:c" });
  expect(split(":x")).toBeUndefined();
});

test("sort orders in the form of REST", () => {
  expect(orderParams("")).toEqual({ sort: "calls" });
  expect(orderParams("-calls")).toEqual({ sort: "calls" });
  expect(orderParams("calls")).toEqual({ sort: "calls", reverse: true });
  expect(orderParams("name")).toEqual({ sort: "name" });
  expect(orderParams("-name")).toEqual({ sort: "name", reverse: true });
  expect(["", "-tokens", "last", "name"].map(orderWords)).toEqual(["by use", "by tokens", "by last use", "by name"]);
});

test("a blocked tool does not wait, and does not come first in the palette", () => {
  expect(word("status", "blocked")).toBe("blocked by you");
  const tool = (name: string, status?: string) => ({ name, ...(status ? { status } : {}) }) as Tool;
  const of = (locked: Tool[], tools: Tool[]) => ranked({ locked, tools }).map((t) => t.name);
  expect(of([tool("s:bad", "blocked"), tool("s:new", "pending_approval")], [tool("s:ok")])).toEqual(["s:new", "s:ok", "s:bad"]);
  expect(of([tool("s:bad", "blocked")], [])).toEqual(["s:bad"]);
});

test("the settings of a tool become changes of single members", () => {
  expect(changesOf(undefined, formOf(undefined))).toEqual({});
  const before = { alias: "new_bug", description: "Mine.", always: true };
  expect(changesOf(before, formOf(before))).toEqual({});
  expect(changesOf(before, { alias: " ", mode: "add", text: " Also. ", always: false })).toEqual({ alias: null, description: null, add_description: "Also.", always: null });
  expect(changesOf({ add_description: "Also." }, { alias: "x", mode: "", text: "Also.", always: true })).toEqual({ alias: "x", add_description: null, always: true });
});
