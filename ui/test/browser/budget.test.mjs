// The size of the first view as sent over the network. test/dist.test.ts checks the size of all of dist.
import assert from "node:assert/strict";
import { test } from "node:test";
import { scene, settled } from "./harness.mjs";

test("the first view has 90 KB", async (t) => {
  const { page } = await scene(t, { demo: true });
  await page.reload();
  await settled(page);
  const files = await page.evaluate(() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .map((e) => [new URL(e.name).pathname, e.encodedBodySize]).filter(([path]) => path.startsWith("/ui/")));
  const kb = files.reduce((sum, [, size]) => sum + size, 0) / 1024;
  t.diagnostic(`${kb.toFixed(1)} KB`);
  assert.ok(files.length > 5 && kb > 20, `not all of it was seen: ${files}`);
  assert.ok(kb <= 90, `${kb.toFixed(1)} KB: ${files.map(([path, size]) => `${path} ${size}`).join(", ")}`);
});
