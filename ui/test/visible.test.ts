import { expect, test } from "vitest";
import { visible } from "../src/lib/visible";

const show = (s: string) => visible(s).map((p) => ("text" in p ? p.text : `[${p.code}]`)).join("");

test.each([
  ["plain text,\n\twith lines", "plain text,\n\twith lines"],
  ["a\u200bb\u202ec", "a[U+200B]b[U+202E]c"],
  ["\u00a0 \u3000", "[U+00A0] [U+3000]"],
  ["\u{e0041}\ufeff\u0007\r", "[U+E0041][U+FEFF][U+0007][U+000D]"],
  ["\ud800", "[U+D800]"],
  ["größer, 日本, ✓", "größer, 日本, ✓"],
])("%j", (text, want) => expect(show(text)).toBe(want));

test("a box has a label", () => {
  expect(visible("\u200b")).toEqual([{ code: "U+200B", name: "Zero width space, invisible" }]);
  expect(visible("\u{e0041}")).toEqual([{ code: "U+E0041", name: "Tag A, invisible" }]);
});
