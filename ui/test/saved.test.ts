import { expect, test } from "vitest";
import { readSaved, saved, selecting } from "../src/lib/saved";

test("a search is what it selects, whatever is open", () => {
  expect(selecting("?status=blocked&id=01M7&lane=write,read&since=all")).toBe("?lane=write,read&since=all&status=blocked");
  expect(selecting("?id=1")).toBe("");
});

test("a name stands once, in the order of names", () => {
  let all = saved([], "refused", "?status=blocked");
  all = saved(all, " destructive ", "?lane=destructive&id=1");
  all = saved(all, "refused", "?status=blocked&since=7d");
  expect(all).toEqual([{ name: "destructive", search: "?lane=destructive" }, { name: "refused", search: "?since=7d&status=blocked" }]);
  expect(saved(all, "  ", "?q=1")).toEqual(all);
});

test("what is stored and cannot be read is left out", () => {
  expect(readSaved("{")).toEqual([]);
  expect(readSaved('{"a":1}')).toEqual([]);
  expect(readSaved('[null, {"name": 1}, {"name": "a", "search": "?id=3&q=b"}]')).toEqual([{ name: "a", search: "?q=b" }]);
});
