import { expect, test } from "vitest";
import { fromBytes, nest, utf16, within, type Node } from "../src/lib/spans";

const bytes = (s: string) => new TextEncoder().encode(s).length;

test("byte offsets become UTF-16 indices", () => {
  const text = "aä€😀b";
  for (let i = 0; i <= text.length; i++) {
    if (i === 4) continue; // the middle of the pair has no offset of its own
    expect(utf16(text, [bytes(text.slice(0, i))])).toEqual([i]);
  }
});

test("an offset inside a character becomes its start, an offset beyond the end becomes the end", () => {
  expect(utf16("a😀b", [2, 3, 4])).toEqual([1, 1, 1]);
  expect(utf16("ab", [2, 3, 99])).toEqual([2, 2, 2]);
});

test("a lone surrogate counts as three bytes, as in its encoding", () => {
  expect(utf16("\ud800x", [3, 4])).toEqual([1, 2]);
});

test("spans that count bytes", () => {
  expect(fromBytes("ä-ö", [{ start: 3, end: 5, data: 1 }, { start: 0, end: 2, data: 2 }])).toEqual([{ start: 2, end: 3, data: 1 }, { start: 0, end: 1, data: 2 }]);
});

const show = (nodes: Node<string>[]): string => nodes.map((n) => ("text" in n ? n.text : `${n.first ? n.mark : "…"}(${show(n.nodes)})`)).join("");
const plain = (nodes: Node<string>[]): string => nodes.map((n) => ("text" in n ? n.text : plain(n.nodes))).join("");

test("spans are nested, the longer outside", () => {
  expect(show(nest("abcdef", [{ start: 2, end: 3, data: "y" }, { start: 1, end: 5, data: "x" }]))).toBe("ax(by(c)de)f");
  expect(show(nest("abc", [{ start: 0, end: 3, data: "x" }, { start: 0, end: 1, data: "y" }]))).toBe("x(y(a)bc)");
});

test("overlapping spans are cut, and each number occurs once", () => {
  expect(show(nest("abcdef", [{ start: 0, end: 3, data: "x" }, { start: 2, end: 5, data: "y" }]))).toBe("x(aby(c))…(de)f");
});

test("no text is lost or doubled, whatever the spans", () => {
  let seed = 7;
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2 ** 31) % n;
  const text = "The quick brown fox";
  for (let round = 0; round < 500; round++) {
    const spans = Array.from({ length: random(6) }, (_, i) => ({ start: random(22) - 1, end: random(22), data: String(i) }));
    expect(plain(nest(text, spans))).toBe(text);
  }
});

test("spans of a part are relative to its start", () => {
  expect(within([{ start: 2, end: 8, data: "x" }, { start: 9, end: 10, data: "y" }], 4, 9)).toEqual([{ start: 0, end: 4, data: "x" }]);
});
