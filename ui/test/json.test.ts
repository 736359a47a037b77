import { expect, test } from "vitest";
import { lines, masks } from "../src/lib/json";

const show = (v: unknown, width?: number) => lines(v, width).map((l) => l.map((t) => (t.kind === "masked" ? `<${t.text}>` : t.text)).join("")).join("\n");

test("short objects are on one line", () => {
  expect(show({ a: 1, b: [true, null] })).toBe('{"a": 1, "b": [true, null]}');
});

test("long objects are valid JSON without the masks", () => {
  const value = { text: "x".repeat(60), list: [{ a: 1 }, { b: "y".repeat(60) }], empty: {}, none: [] };
  expect(show(value).split("\n").length).toBeGreaterThan(3);
  expect(JSON.parse(show(value))).toEqual(value);
});

test("masked values are boxes", () => {
  expect(show({ k: "Bearer [masked github-token 12ab34cd]" })).toBe('{"k": "Bearer <masked github-token 12ab34cd>"}');
  expect(show({ k: "[masked token 12ab34cd]", e: "" })).toBe('{"k": <masked token 12ab34cd>, "e": ""}');
  expect(masks("a ***masked:3*** b").map((t) => t.kind)).toEqual(["text", "masked", "text"]);
  expect(masks("[masked by hand]")).toEqual([{ kind: "text", text: "[masked by hand]" }]);
});
