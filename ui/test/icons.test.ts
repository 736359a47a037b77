import { expect, test } from "vitest";
import shell from "../index.html?raw";
import { iconNames } from "../src/ui/icon";

test("each icon is drawn in index.html, and no other", () => {
  expect([...shell.matchAll(/<symbol id="i-([a-z-]+)"/g)].map((m) => m[1]).sort()).toEqual([...iconNames].sort());
});

test("the policy of the daemon lets the shell through", () => {
  expect(shell).not.toMatch(/ style=|<style|<script(?![^>]* src=)|data:| on[a-z]+=/);
});
