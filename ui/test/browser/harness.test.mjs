// The harness detects what a page must never do. Without it, the tests that rely on it would pass.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axe, scene, until } from "./harness.mjs";

const deeds = {
  "console error": () => console.error("an error"),
  exception: () => void setTimeout(() => { throw new Error("thrown") }),
  "policy: script-src": () => document.body.append(Object.assign(document.createElement("script"), { textContent: "globalThis.ran = 1" })),
  "policy: style-src": () => document.body.insertAdjacentHTML("beforeend", "<p style='color:red'>x</p>"),
  "policy: img-src": () => void (new Image().src = "http://127.0.0.1:9/x.png"),
  "policy: connect-src": () => void fetch("http://127.0.0.1:9/").catch(() => {}),
  "dialog: hello": () => void setTimeout(() => alert("hello")),
  "window: ": () => void open("about:blank"),
  frame: () => document.body.append(document.createElement("iframe")),
  "left for": () => void (location.href = "/healthz"),
};

test("forbidden actions of a page are detected", async (t) => {
  const { page, trouble, visit } = await scene(t);
  assert.deepEqual(trouble, []);
  for (const [what, deed] of Object.entries(deeds)) {
    await page.evaluate(deed);
    await until(what, () => trouble.some((line) => line.includes(what.replace(" error", " error:"))), 5000).catch((e) => assert.fail(`${e.message}: ${trouble.join("\n")}`));
    if (what.startsWith("policy: script")) assert.equal(await page.evaluate(() => globalThis.ran), undefined);
    trouble.length = 0;
    await visit("overview");
    trouble.length = 0;
  }
  await page.evaluate(() => document.querySelector("main").insertAdjacentHTML("beforeend", "<input>"));
  assert.match((await axe(page)).join("\n"), /^label: /m);
});
