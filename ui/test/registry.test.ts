import { expect, test } from "vitest";
import type { RegistryEntry, RegistryOption } from "../src/api/types";
import { answerNotes, missing, refusal, valuesOf } from "../src/lib/registry";

const option: RegistryOption = { id: "npm", command: ["npx", "-y", "x@1.0.0"], inputs: [
  { name: "TOKEN", kind: "env", required: true, secret: true },
  { name: "REGION", kind: "env", required: true, default: "eu" },
  { name: "folder", kind: "argument", required: true, repeated: true, folder: true },
] };
const entry: RegistryEntry = { registry: "official", name: "a/b", version: "1", options: [option], verdict: "clean", findings: [] };

test("a server is refused with the reason", () => {
  expect(refusal(entry)).toEqual("");
  expect(refusal({ ...entry, status: "deprecated", status_message: "Use c/d." })).toEqual("It is deprecated in the registry, so it cannot be added. Use c/d.");
  expect(refusal({ ...entry, options: [{ id: "mcpb", inputs: [], problem: "another kind" }] })).toEqual("another kind");
  expect(refusal({ ...entry, options: [] })).toEqual("It has no package and no address.");
});

test("only required inputs without a default are missing, and secrets can be set later", () => {
  expect(missing(option, {}).map((i) => i.name)).toEqual(["folder"]);
  expect(missing(option, { folder: "/a" })).toEqual([]);
});

test("an input with several values has one on each line", () => {
  expect(valuesOf(option, { TOKEN: "t=1", folder: "/a\n\n /b ", REGION: "", other: "x" })).toEqual(["TOKEN=t=1", "folder=/a", "folder=/b"]);
});

test("an answer says how old it is, and what is left out", () => {
  const age = () => "2 h";
  expect(answerNotes({ servers: [], registries: [{ name: "r", url: "u", fetched_at: "x", problem: "no network", more: true, unreadable: 2 }] }, age)).toEqual(
    ["r cannot be reached. This is its stored answer (age: 2 h).", "r has more servers: search for a longer name.", "2 servers of r are left out: too large, or with a wrong type."]);
  expect(answerNotes({ servers: [], registries: [{ name: "r", url: "u", problem: "no network" }] }, age)).toEqual(["r: no network."]);
});
