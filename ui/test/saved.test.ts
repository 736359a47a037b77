import { expect, test } from "vitest";
import { readSaved, saved, selecting } from "../src/lib/saved";

test("a saved search is its filters, not the open record", () => {
  expect(selecting("?status=blocked&id=01M7&lane=write,read&since=all")).toBe("?lane=write,read&since=all&status=blocked");
  expect(selecting("?id=1")).toBe("");
});

test("each name is listed once, in alphabetical order", () => {
  let all = saved([], "refused", "?status=blocked");
  all = saved(all, " destructive ", "?lane=destructive&id=1");
  all = saved(all, "refused", "?status=blocked&since=7d");
  expect(all).toEqual([{ name: "destructive", search: "?lane=destructive" }, { name: "refused", search: "?since=7d&status=blocked" }]);
  expect(saved(all, "  ", "?q=1")).toEqual(all);
});

test("unreadable stored searches are skipped", () => {
  expect(readSaved("{")).toEqual([]);
  expect(readSaved('{"a":1}')).toEqual([]);
  expect(readSaved('[null, {"name": 1}, {"name": "a", "search": "?id=3&q=b"}]')).toEqual([{ name: "a", search: "?q=b" }]);
});
