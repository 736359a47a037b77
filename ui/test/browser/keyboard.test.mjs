// Keyboard only, on every page: each focusable element can be reached, is visible, and can be left
// again. Pages have keys. Esc closes what is open and returns the focus.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { full, scene, settled } from "./harness.mjs";
import { pages, places, readSources } from "./pages.mjs";
import { startWorld } from "./world.mjs";

let world;
before(async () => (world = await startWorld()));
after(() => world?.close());

const sceneOf = (t) => scene(t, { daemon: world, context: { viewport: { width: 1440, height: 900 }, reducedMotion: "reduce" } });

// Runs in the page: numbers the elements that Tab must reach, and returns their count. Of a group of radio
// buttons or tabs, Tab reaches one and the arrow keys reach the others.
function mark() {
  const all = [...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex], [contenteditable=true]")].filter((el) => {
    if (el.tabIndex < 0 || el.disabled || !el.checkVisibility({ visibilityProperty: true, opacityProperty: false })) return false;
    if (el.closest("[inert], [popover]:not(:popover-open)")) return false;
    if (el.type === "radio") return el === (document.querySelector(`input[type=radio][name="${CSS.escape(el.name)}"]:checked`) ?? document.querySelector(`input[type=radio][name="${CSS.escape(el.name)}"]`));
    return true;
  });
  all.forEach((el, i) => (el.dataset.reach = String(i)));
  return all.map((el) => el.outerHTML.slice(0, 120));
}

// Runs in the page: returns the focused element, and problems with its visibility. again: focuses it once more first.
function focused(again) {
  const el = document.activeElement;
  if (again) {
    el.blur();
    el.focus();
  }
  if (!el || el === document.body) return { reach: undefined };
  const r = el.getBoundingClientRect();
  const clipped = r.width <= 1 || r.height <= 1; // for screen readers only
  const x = Math.min(Math.max(r.left + r.width / 2, 0), innerWidth - 1);
  const y = Math.min(Math.max(r.top + Math.min(r.height / 2, 12), 0), innerHeight - 1);
  const top = document.elementFromPoint(x, y);
  const hidden = !clipped && (r.bottom <= 0 || r.top >= innerHeight || !(top && (el.contains(top) || top.contains(el) || top.closest("label")?.contains(el) || top.closest("label")?.control === el)));
  const ring = [el, el.parentElement, el.closest("label")].some((e) => {
    if (!e) return false;
    const s = getComputedStyle(e);
    return (s.outlineStyle !== "none" && parseFloat(s.outlineWidth) >= 1) || s.boxShadow !== "none";
  });
  return { reach: el.dataset.reach, html: el.outerHTML.slice(0, 120), hidden, ring: ring || clipped };
}

test("Tab (in a full run also Shift-Tab) reaches everything, and the focused element is visible", async (t) => {
  const { page, visit } = await sceneOf(t);
  const wrong = [];
  for (const place of (await places(world)).filter((p) => !p.startsWith("activity?id") || p.includes("status"))) {
    await visit(place);
    const all = await page.evaluate(mark);
    for (const key of full ? ["Tab", "Shift+Tab"] : ["Tab"]) {
      const seen = new Set();
      // It may begin in the middle, where the page has set the focus, and wraps around.
      for (let i = 0; seen.size < all.length && i < 2 * all.length + 5; i++) {
        await page.keyboard.press(key);
        let f = await page.evaluate(focused);
        if (f.reach === undefined || seen.has(f.reach)) continue;
        // The page is live: new items above can push the element out of view after Tab has focused it.
        if (f.hidden) f = await page.evaluate(focused, true);
        if (f.reach === undefined) continue;
        seen.add(f.reach);
        if (f.hidden) wrong.push(`${place}, ${key}: covered or out of view: ${f.html}`);
        if (!f.ring) wrong.push(`${place}, ${key}: no ring: ${f.html}`);
      }
      // The page is live: elements that a crashed server has replaced in the meantime need not be reached.
      const there = await page.evaluate(() => [...document.querySelectorAll("[data-reach]")].map((el) => el.dataset.reach));
      all.forEach((html, i) => seen.has(String(i)) || !there.includes(String(i)) || wrong.push(`${place}, ${key}: not reached: ${html}`));
    }
  }
  assert.deepEqual([...new Set(wrong)], []);
});

test("g and a letter go to each page, the palette and the list of keys open and close", async (t) => {
  const { page } = await sceneOf(t);
  for (const { title, key } of [...pages.slice(1), pages[0]]) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.waitForFunction((want) => document.title.replace(/^\(\d+\+?\) /, "") === want, `${title} · MCPProxy`); // the count of waiting items comes before the title
    await settled(page);
    assert.equal(await page.evaluate(() => document.activeElement?.id), "main", `${title}: the focus is in the content`);
  }
  for (const { name, title } of pages) {
    await page.keyboard.press("Control+k");
    await page.getByRole("combobox").fill(title);
    await page.getByRole("option").first().waitFor();
    await page.keyboard.press("Enter");
    await page.waitForFunction((want) => location.pathname === `/ui/${want}`, name);
    await settled(page);
  }
  for (const key of ["Control+k", "?"]) {
    const link = page.getByRole("navigation").getByRole("link").first();
    await link.focus();
    await page.keyboard.press(key);
    await page.locator("dialog[open]").waitFor();
    await page.keyboard.press("Escape");
    await page.locator("dialog[open]").waitFor({ state: "hidden" });
    assert.equal(await link.evaluate((el) => el === document.activeElement), true, `${key}: the focus is back`);
  }
});

test("j moves to a row, Enter opens it, Esc closes it and returns the focus to the row", async (t) => {
  const { page, visit } = await sceneOf(t);
  const withTable = pages.filter(({ name }) => /<Table\b/.test(readSources(name)));
  for (const { name } of withTable) {
    await visit(name);
    await page.locator("#main tr[data-i]:not(.group)").first().waitFor();
    const row = () => page.evaluate(() => document.activeElement?.closest("tr[data-i]:not(.group)")?.dataset.i);
    for (let i = 0; i < 3 && (i === 0 || (await row()) === undefined); i++) {
      await page.keyboard.press("j");
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))));
    }
    const at = await row();
    assert.notEqual(at, undefined, `${name}: j goes to a row`);
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => new URLSearchParams(location.search).has("id")).catch(() => assert.fail(`${name}: Enter opens nothing`));
    await settled(page);
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !new URLSearchParams(location.search).has("id")).catch(() => assert.fail(`${name}: Esc does not close`));
    assert.equal(await row(), at, `${name}: the focus is on the row again`);
  }
  t.diagnostic(`with a table: ${withTable.map((p) => p.name)}`);
});
