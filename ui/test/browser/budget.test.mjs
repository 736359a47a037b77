// What the first view loads, as it comes over the wire. All of dist is weighed by test/dist.test.ts.
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
