import { expect, test } from "vitest";
import { pauseText, stopped } from "../src/lib/pause";

test("the banner tells who paused calls and why", () => {
  expect(pauseText({ paused: true, by: "admin", reason: "wrong files" })).toBe("All calls are paused by admin. Reason: wrong files");
  expect(pauseText({ paused: true })).toBe("All calls are paused.");
  expect(pauseText({ paused: true, unknown: "damaged" })).toBe("MCPProxy rejects every call, because it cannot read whether calls are paused: damaged");
});

test("a pause tells what it has cancelled", () => {
  expect(stopped(1, 0)).toBe("Calls are paused. 1 held or running call was cancelled.");
  expect(stopped(0, 0)).toMatch("No held or running calls were cancelled.");
  expect(stopped(3, 2)).toMatch(/3 .* 2 did not end yet/);
});
