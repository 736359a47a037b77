// A server and an agent send hostile texts (578 in a full run, otherwise a fixed sample) in every field that they control. On no page does a text run,
// cause a request or become markup, and the pages keep working.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Daemon, full, scene, settled } from "./harness.mjs";
import { until } from "./daemon.mjs";
import { pages } from "./pages.mjs";
import { attempts as all, hostile, naughty, packs } from "./xss.mjs";

// Without a full run: every sixth attempt, all that break out of quotes and templates, and every ninth pack.
const attempts = all.filter((_, i) => full || i % 6 === 0 || i >= 50);
const texts = [...attempts, ...packs(naughty, 12).filter((_, i) => full || i % 9 === 0)];
const many = full ? 150 : texts.length;
const least = { approvals: many, activity: many, tools: many, servers: 2 }; // the minimum number of items to open
const names = texts.map((t) => (Array.isArray(t) ? t.join("\n") : t));
let daemon;

before(async () => {
  daemon = await Daemon.run({ scripts: { held: hostile(texts), open: hostile(texts) }, servers: { open: { trust: "auto" } }, config: { mcp_management: "propose" } });
  await daemon.state("ready", "held", "open");
  const last = `t${texts.length - 1}`;
  await daemon.tools(`held:${last}`, `open:${last}`);
  for (const [i, text] of names.entries()) {
    const agent = await daemon.client(text, text);
    const intent = { operation_type: "read", data_sensitivity: text, reason: text };
    await agent.call("call_tool_read", { name: `open:t${i}`, args: { text }, intent });
    if (i % 9 === 0) await agent.call("retrieve_tools", { query: text });
    if (i % 9 === 1) await agent.call("call_tool_read", { name: text, args: { [text]: text }, intent: { ...intent, operation_type: text } }).catch(() => {}); // refused
  }
  const agent = await daemon.client(names[0], names[1]);
  await agent.call("upstream_servers", { operation: "add", name: "proposed", command: attempts[0], args_json: JSON.stringify(attempts), env_json: '{"A":"1"}' });
  // The approved definition has changed: the difference contains both texts.
  const { tools } = await daemon.api("GET", "/approvals?limit=500");
  for (const { server, tool, fingerprint } of tools) await daemon.api("POST", `/servers/${server}/tools/${encodeURIComponent(tool)}/approve`, { fingerprint });
  await daemon.scripted("held", hostile([...texts.slice(7), ...texts.slice(0, 7)]));
  await until("changed tools wait", async () => (await daemon.api("GET", "/approvals?limit=500")).tools.filter((t) => t.reason === "changed").length > (full ? 90 : 0.87 * texts.length));
});
after(() => daemon?.close());

const begin = (t) => scene(t, { daemon, context: { viewport: { width: 1440, height: 900 }, reducedMotion: "reduce" } });

/** Fails if the page contains foreign elements. */
async function unharmed(page, where) {
  const state = await page.evaluate(() => ({
    ran: globalThis.__xss,
    // Elements from the build are in the head; the SVG elements belong to icons.
    markup: [...document.querySelectorAll("body :is(script, img, iframe, object, embed, base, meta, link, style, video, audio, form[action], a[href^='javascript' i], a[href^='data' i], marquee, math)")].map((e) => e.outerHTML.slice(0, 200)),
    // The build's own files in the head have relative addresses.
    away: [...document.querySelectorAll("a[href], use, [src]")].map((e) => [e, e.getAttribute("href") ?? e.getAttribute("src")]).filter(([e, to]) =>
      !/^(\/ui\/|#|https:\/\/(github\.com|modelcontextprotocol\.io)\/)/.test(to) && !(e.closest("head") && /^(\.\.?\/)+(theme\.js|assets\/[\w.-]+)$/.test(to))).map(([, to]) => to),
    inherited: [...Object.keys(Object.prototype), ...Object.keys(Array.prototype)],
    failed: /This page crashed|Could not load this page/.test(document.getElementById("main")?.innerText ?? ""),
  }));
  assert.deepEqual(state, { ran: undefined, markup: [], away: [], inherited: [], failed: false }, where);
}

/** Opens each item in the list of a page, and each tab of it. Returns the number of items. */
async function walk(page, name, most = 200) {
  const id = () => new URL(page.url()).searchParams.get("id");
  const frames = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))));
  for (let i = 0; i < 4 && !id(); i++) {
    await page.keyboard.press("j");
    await frames();
    await page.keyboard.press("Enter");
    await frames();
  }
  const seen = new Set();
  for (let last; id() !== last && seen.size < most; ) {
    last = id();
    seen.add(last);
    await settled(page);
    await unharmed(page, `${name}, ${last}`);
    if (seen.size % 8 === 1) {
      const tabs = page.locator("#main [role=tab]:visible");
      for (let i = 0; i < (await tabs.count()); i++) {
        await tabs.nth(i).click();
        await settled(page);
        await unharmed(page, `${name}, ${last}, tab ${i}`);
      }
      await page.evaluate(() => document.activeElement?.blur());
    }
    await page.keyboard.press("j");
    await frames();
    for (let i = 0; i < 10 && id() === last; i++) await frames();
  }
  return seen.size;
}

for (const { name } of pages) {
  test(`${name}: all that it lists`, async (t) => {
    const { page, visit } = await begin(t);
    await visit(name);
    await unharmed(page, name);
    const opened = await walk(page, name);
    t.diagnostic(`${opened} opened`);
    assert.ok(opened >= (least[name] ?? 1), `only ${opened} could be opened`);
    await page.keyboard.press("Escape");
    await page.keyboard.press("g");
    await page.keyboard.press("o");
    await page.waitForFunction(() => location.pathname === "/ui/overview");
    await settled(page);
    await unharmed(page, "afterwards");
  });
}

test("in the address and in fields", async (t) => {
  const { page, visit } = await begin(t);
  const parameters = ["id", "q", "since", "until", "status", "server", "lane", "tool", "client", "session", "type", "kind", "view", "show", "part", "fold", "hints", "use", "start", "text"];
  for (const [i, text] of attempts.entries()) {
    const { name } = pages[i % pages.length];
    const q = new URLSearchParams(parameters.map((p) => [p, text]));
    await page.evaluate((to) => (history.pushState(null, "", to), dispatchEvent(new PopStateEvent("popstate"))), `/ui/${name}?${q}`);
    await settled(page);
    await unharmed(page, `?${text}`);
    if (i % 6) continue;
    await visit(`${name}/${encodeURIComponent(text)}?${q}#${encodeURIComponent(text)}`);
    await unharmed(page, `/${text}`);
  }
  await visit("tools");
  for (const text of attempts.filter((_, i) => i % 3 === 0)) {
    const field = page.locator("#page-search");
    if (await field.count()) await field.fill(text);
    await page.keyboard.press("Control+k");
    const asked = page.waitForResponse((r) => /\/api\/v1\/tools\/search\?/.test(r.url())); // the palette sends its request after a moment
    await page.getByRole("combobox").fill(text.slice(0, 40));
    await asked;
    await settled(page);
    await unharmed(page, `typed ${text}`);
    await page.keyboard.press("Escape");
  }
});
