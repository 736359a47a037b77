// Names such as "constructor", which every object inherits, are shown and sent unchanged.
import { expect, test } from "vitest";
import type { ActivityRecord, ParsedServer } from "../src/api/types";
import { clientName } from "../src/lib/clients";
import { own, setOwn } from "../src/lib/own";
import { bodyOf, keep } from "../src/lib/paste";
import { label, within } from "../src/lib/range";
import { surfaceWords } from "../src/lib/who";
import { argumentWords, checks, remedy } from "../src/pages/activity/decision";
import { sentence as filtered, word as filterWord } from "../src/pages/activity/filters";
import { actionWords } from "../src/pages/activity/row";
import { at, parameters } from "../src/pages/approvals/definition";
import { whyRefused } from "../src/pages/overview/words";
import { checkPage } from "../src/pages/settings/model";
import { argumentsOf, entriesOf, fields } from "../src/pages/tools/form";
import { choicesOf, override } from "../src/pages/tools/hints";
import { how } from "../src/pages/tools/marked";
import { entries, word } from "../src/pages/tools/query";

const names = ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf"];
const json = (name: string, value: unknown): any => JSON.parse(`{${JSON.stringify(name)}: ${JSON.stringify(value)}}`);

test.each(names)("%s", (name) => {
  const record: Record<string, string> = {};
  expect([own(record, name), own(undefined, name), own(record, undefined)]).toEqual([undefined, undefined, undefined]);
  setOwn(record, name, "x");
  expect([own(record, name), JSON.stringify(record)]).toEqual(["x", JSON.stringify(json(name, "x"))]);

  // The form of a tool's arguments.
  const all = fields({ properties: json(name, { type: "string" }), required: [name] })!;
  expect(Object.entries(argumentsOf(all, {}).mistakes)).toEqual([[name, "This field is required."]]);
  expect(Object.entries(argumentsOf(fields({ properties: json(name, { type: "integer" }) })!, json(name, "x")).mistakes)).toEqual([[name, "Enter a number, such as 12."]]);
  expect(JSON.stringify(argumentsOf(all, entriesOf(all, json(name, "v"))!).args)).toBe(JSON.stringify(json(name, "v")));
  expect(entriesOf(fields({ properties: { ...json(name, { type: "string" }), other: { type: "string" } } })!, { other: "v" })).toEqual({ other: "v" });

  // A definition next to the approved one.
  const schema = (properties: unknown) => ({ inputSchema: { type: "object", properties } });
  expect(parameters(schema(json(name, { type: "string" })), schema({}), [])).toMatchObject([{ name, change: "added", is: "string" }]);
  expect(parameters(schema({}), schema(json(name, { type: "string" })), [])).toMatchObject([{ name, change: "removed", was: "string" }]);
  expect([at({}, "/" + name), at(json(name, 1), "/" + name)]).toEqual([undefined, 1]);

  // Words in the address, in records and in responses.
  const now = new Date("2026-11-20T15:00:00Z");
  expect(label({ since: name, until: "" }, now)).toBe(label({ since: "", until: "" }, now));
  expect(within({ since: name, until: "" }, now)).toBe(within({ since: "", until: "" }, now));
  expect([word("status", name), filterWord("status", name), filterWord("type", name), clientName(name, []), surfaceWords(name), actionWords(name)]).toEqual([name, name, name, name, "", name.replaceAll("_", " ")]);
  expect(entries("status", {}, name)).toEqual([[name, 0]]);
  expect(filtered({ lane: [], status: [], server: [], tool: [], client: [], session: "", type: [name], q: "" } as never)).toBe(`Type is ${name}`);
  expect(how({ how: name, fields: [name] })).toBe(`${name}, in ${name}`);
  expect(checkPage({ code: name, state: "warn", title: "" }, [])).toBeUndefined();
  expect(checks({ outcome: "refused", check: name } as never)).toEqual([{ name: name.replaceAll("_", " "), passed: false }]);
  expect(argumentWords({ argument: "a", by: name, operation: "read" } as never)).toContain(`read as ${name}`);
  const refused = { status: "blocked", metadata: { error_code: "TOOL_LOCKED", decision: { check: "callable", status: name } } } as unknown as ActivityRecord;
  expect([whyRefused(refused), remedy(refused)!.text]).toEqual(["locked", `The tool has the status ${name.replaceAll("_", " ")}.`]);

  // Hints of a tool of that name.
  const choices = { readOnlyHint: "true", destructiveHint: "", idempotentHint: "", openWorldHint: "" } as const;
  expect(Object.values(choicesOf({}, name))).toEqual(["", "", "", ""]);
  expect(JSON.stringify(override({}, name, choices))).toBe(JSON.stringify(json(name, { readOnlyHint: true })));
  expect(choicesOf(override({}, name, choices)!, name)).toEqual(choices);

  // A secret in an environment variable of that name is replaced by its reference.
  const token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
  const server: ParsedServer = { name: "s", exists: false, notes: [], launch: { protocol: "stdio" } as never, add: { name: "s", command: "x", env: json(name, token) }, secrets: [{ place: "env", name, kind: "github-token", suggestion: "${env:T}" }] };
  expect(JSON.stringify(bodyOf(server, {}, keep(server, {}, new Map())).env)).toBe(JSON.stringify(json(name, "${keyring:T}")));
  expect(keep({ ...server, add: { name: "s", command: "x", env: {} } }, {}, new Map()).size).toBe(0);
  expect(Object.keys(Object.prototype)).toEqual([]);
});
