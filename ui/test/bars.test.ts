import { expect, test } from "vitest";
import { axisSize, axisValues, barsOf, nice } from "../src/lib/bars";

const bucket = { start: "2026-11-23T10:00:00Z", read: 4, write: 2, destructive: 1, refused: 3, failed: 2 };

test("lanes are stacked upward, refused and failed calls downward", () => {
  expect(barsOf([bucket], 60).map((b) => [b.kind, b.low, b.high])).toEqual([["read", 0, 4], ["write", 4, 6], ["destructive", 6, 7], ["refused", -3, 0], ["failed", -5, -3]]);
});

test("lanes that a filter excludes are grey", () => {
  expect(barsOf([bucket], 60, ["write"]).map((b) => b.kind)).toEqual(["ghost", "write", "ghost", "refused", "failed"]);
});

test("the scale has few round numbers", () => {
  expect(nice(74)).toEqual([25, 50]);
  expect(nice(1)).toEqual([1]);
  for (const top of [3, 9, 47, 120, 999, 12_000]) expect(nice(top).length).toBeLessThanOrEqual(4);
});

test("the labels of the scale have separators and room", () => {
  expect(axisValues([0, 500, 100_000, 2_500_000])).toEqual(["", "500", "100,000", "2,500,000"]);
  expect(axisSize(null)).toBe(30);
  expect(axisSize(["", "50"])).toBe(30);
  for (const label of ["1,000", "100,000", "2,500,000"]) expect(axisSize(["", label])).toBeGreaterThanOrEqual(label.length * 6.5 + 4 + 4);
});
