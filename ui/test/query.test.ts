import { expect, test } from "vitest";
import { flag, list, natural, oneOf, read, text, write } from "../src/lib/query";

const schema = { lane: list(["read", "write", "destructive"]), server: list(), since: text("24h"), sort: oneOf(["name", "calls"], "calls"), n: natural(), live: flag() };

test("filters are read from the URL", () => {
  expect(read(schema, "?lane=write,destructive&server=a%252Cb,c&sort=name&n=7&live=1")).toEqual({
    lane: ["write", "destructive"], server: ["a,b", "c"], since: "24h", sort: "name", n: 7, live: true,
  });
});

test("invalid values become the default", () => {
  expect(read(schema, "?lane=all,read&sort=evil&n=-1")).toEqual({ lane: ["read"], server: [], since: "24h", sort: "calls", n: 0, live: false });
});

test("a written value can be read back", () => {
  const search = write(schema, "?id=01M7", { lane: ["write", "destructive"], server: ["50%", "a,b"], since: "7d" });
  expect(search).toContain("lane=write,destructive");
  expect(search).toContain("id=01M7");
  expect(read(schema, search)).toMatchObject({ lane: ["write", "destructive"], server: ["50%", "a,b"], since: "7d" });
});

test("defaults leave the URL", () => {
  expect(write(schema, "?lane=read&since=7d&live=1", { lane: [], since: "24h", live: false })).toBe("");
});
