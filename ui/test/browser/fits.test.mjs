// No overflow: on every page and state, from 320 px to wide, the window has no
// scroll bar, and no column of a page has a horizontal one.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { phone, scene, settled } from "./harness.mjs";
import { places } from "./pages.mjs";
import { startWorld } from "./world.mjs";

let world;
before(async () => (world = await startWorld()));
after(() => world?.close());

// Runs in the page: returns the elements that are larger than their container.
function over() {
  const root = document.documentElement;
  const name = (el) => `${el.localName}${el.id && "#" + el.id}.${String(el.className)} ${el.textContent.slice(0, 40)}`;
  const wrong = [];
  if (root.scrollHeight > innerHeight) {
    const low = [...document.querySelectorAll("body *")].filter((el) => getComputedStyle(el).position === "absolute" && el.getBoundingClientRect().bottom > innerHeight);
    wrong.push(`the window scrolls by ${root.scrollHeight - innerHeight} px: ${low.map(name).join("; ")}`);
  }
  if (root.scrollWidth > innerWidth) wrong.push(`the window scrolls sideways by ${root.scrollWidth - innerWidth} px`);
  for (const box of document.querySelectorAll("#main, #main :not(pre, textarea, .wide-table, .filters)")) {
    // On a phone, the content next to an open record is there only for screen readers.
    if (box.scrollWidth > box.clientWidth && getComputedStyle(box).overflowX === "auto" && box.clientWidth > innerWidth / 8) wrong.push(`${name(box)} is ${box.scrollWidth - box.clientWidth} px too wide`);
  }
  return wrong;
}

// Each address is opened once in each kind of window, and measured at each width.
for (const [widths, height, context] of [[[1440], 900, {}], [[390, 320], 844, phone]]) {
  test(`every page and state at ${widths.join(" and ")} px`, async (t) => {
    const { page, turn } = await scene(t, { daemon: world, context: { ...context, viewport: { width: widths[0], height }, reducedMotion: "reduce" } });
    const wrong = [];
    for (const place of await places(world)) {
      await turn(place);
      for (const width of widths) {
        if (page.viewportSize().width !== width) {
          await page.setViewportSize({ width, height });
          await page.waitForFunction((w) => innerWidth === w, width);
          await settled(page);
        }
        wrong.push(...(await page.evaluate(over)).map((w) => `${place} at ${width} px: ${w}`));
      }
      widths.reverse(); // the next address begins at the last width
    }
    assert.deepEqual(wrong, []);
  });
}
