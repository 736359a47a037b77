import { expect, test } from "vitest";
import { direction, ordering, pressed, sorted } from "../src/lib/order";

const rows = [{ n: "b", v: 2 }, { n: "a10", v: undefined }, { n: "a9", v: 2 }, { n: "c", v: 1 }];
const by = { n: (r: (typeof rows)[number]) => r.n, v: (r: (typeof rows)[number]) => r.v };
const names = (order: string) => sorted(rows, order, by).map((r) => r.n).join(" ");

test("rows are sorted by a column, rows without a value last", () => {
  expect(names("n")).toBe("a9 a10 b c");
  expect(names("-n")).toBe("c b a10 a9");
  expect(names("v")).toBe("c b a9 a10");
  expect(names("-v")).toBe("b a9 c a10"); // equal items keep their order
  expect(names("")).toBe("b a10 a9 c");
  expect(names("constructor")).toBe("b a10 a9 c");
});

test("the header of a column reverses the order, then removes it", () => {
  expect(["", "n", "-n"].map((o) => pressed(o, "n", "ascending"))).toEqual(["n", "-n", ""]);
  expect(["", "-v", "v"].map((o) => pressed(o, "v", "descending"))).toEqual(["-v", "v", ""]);
  expect(pressed("-v", "n", "ascending")).toBe("n");
  expect([direction("n", "n"), direction("-n", "n"), direction("n", "v")]).toEqual(["ascending", "descending", undefined]);
});

test("the URL accepts only existing orders", () => {
  const order = ordering(["n", "v"]);
  expect(["n", "-v", "x", "--n", "", null].map((t) => order.read(t))).toEqual(["n", "-v", "", "", "", ""]);
  expect([order.write("-n"), order.write("")]).toEqual(["-n", null]);
});
