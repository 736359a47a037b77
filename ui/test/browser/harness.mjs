// Helpers for tests in a real browser. A test begins with
//   const { page, daemon, api, visit } = await scene(t, { demo: true });
// and fails at its end if the page did something forbidden: see watch().
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after } from "node:test";
import { chromium } from "playwright-core";
import { Daemon, patience, until } from "./daemon.mjs";

export { Daemon, patience, until };

/** Whether tests run in full, as in the nightly run. */
export const full = process.env.MCPPROXY_TEST_VOLUME === "full";

/** Starts Chromium; only names of this machine are resolved. */
export const launch = () => chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"],
});

// All tests of a file share one Chromium. Each scene has its own context, which is isolated from the others.
let shared;
if (process.env.NODE_TEST_CONTEXT) after(async () => (await shared)?.close()); // the programs that make pictures also import this file

export const desktop = { viewport: { width: 1440, height: 900 } };
export const phone = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

/**
 * Records what a page must never do: errors and warnings of the console, exceptions, violations of its
 * policy, requests to other hosts, 5xx responses, dialogs, windows, frames, leaving /ui/.
 * allow: patterns of events that a test causes on purpose. The page itself shows 4xx responses.
 */
export function watch(context, url, allow = []) {
  const trouble = [];
  const note = (text) => allow.some((a) => a.test(text)) || trouble.push(text);
  const own = (address) => address.startsWith(url + "/") || address.startsWith(`blob:${url}/`) || address === "about:blank";
  context.on("console", (m) => {
    if (m.type() !== "error" && m.type() !== "warning") return;
    // The browser's own message about a 4xx response.
    if (/^Failed to load resource: the server responded with a status of 4\d\d/.test(m.text()) && m.location().url.startsWith(url + "/api/")) return;
    note(`console ${m.type()}: ${m.text()}`);
  });
  context.on("weberror", (e) => note(`exception: ${e.error().stack ?? e.error()}`));
  context.on("dialog", (d) => (note(`dialog: ${d.message()}`), d.dismiss().catch(() => {})));
  context.on("request", (r) => own(r.url()) || note(`request to another host: ${r.url()}`));
  context.on("response", (r) => r.status() >= 500 && note(`answer ${r.status()}: ${r.url()}`));
  context.on("page", (p) => {
    void p.opener().then((o) => o && note(`window: ${p.url()}`)).catch(() => {});
    p.on("frameattached", () => note("frame"));
    p.on("framenavigated", (f) => f.url().startsWith(url + "/ui/") || f.url() === "about:blank" || note(`left for ${f.url()}`));
  });
  return trouble;
}

// Runs in every page before its scripts: reports policy violations, also those without a console message.
const violations = () => document.addEventListener("securitypolicyviolation", (e) => console.error(`policy: ${e.violatedDirective} by ${e.blockedURI} ${e.sample}`));

/**
 * Starts a daemon and a browser context with a signed-in page, and closes both at the end of the test.
 * options: those of Daemon.run; daemon: one that runs already; allow: see watch(); context: of the browser's
 * context (desktop, phone, {colorScheme}); at: the first address; signIn: false opens no page.
 */
export async function scene(t, { daemon: given, allow, context: wanted = desktop, at = "overview", signIn = true, ...options } = {}) {
  const daemon = given ?? (await Daemon.run(options));
  let context;
  const end = async () => {
    // The page closes before its daemon. Otherwise it would report an error.
    await context?.close();
    if (!given) await daemon.close();
  };
  t.after(end);
  const browser = await (shared ??= launch());
  context = await browser.newContext({ locale: "en-GB", timezoneId: "UTC", permissions: [], ...wanted });
  context.setDefaultTimeout(patience);
  const trouble = watch(context, daemon.url, allow);
  await context.addInitScript(violations);
  const page = await context.newPage();
  t.after(() => assert.deepEqual(trouble, [], "the page did what it never may"));
  const s = {
    daemon, browser, context, page, trouble, api: daemon.api,
    /** Opens a page by its address below /ui/, and waits until it is loaded. */
    visit: async (path, p = page) => {
      await p.goto(`${daemon.url}/ui/${path}`);
      await settled(p);
    },
    /** Opens a page as a link does, without a reload, and waits until its data is loaded. */
    turn: async (path, p = page) => {
      await p.evaluate((to) => {
        history.pushState(null, "", to);
        dispatchEvent(new PopStateEvent("popstate"));
        return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      }, `/ui/${path}`);
      await settled(p);
    },
    /** Signs the page in with a new code, as `mcpproxy ui` does. */
    signIn: async (path = at, p = page) => {
      await p.goto("about:blank"); // a change of the # alone would not load the page
      await s.visit(`${path}#${await daemon.code()}`, p);
    },
  };
  if (signIn) await s.signIn();
  return s;
}

/** Waits until the page has its heading and nothing is loading. */
export async function settled(page) {
  await page.locator("#main :is(h1, h2):visible").first().waitFor();
  await page.waitForFunction(() => !document.querySelector("#main .skel, #main [aria-label=Loading]"));
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Returns the findings of axe-core, one per line. rules: only these rules. */
export async function axe(page, rules) {
  if (!(await page.evaluate(() => "axe" in globalThis))) await page.evaluate(axeSource);
  const { violations } = await page.evaluate((r) => globalThis.axe.run(document, { resultTypes: ["violations"], ...(r ? { runOnly: { type: "rule", values: r } } : {}) }), rules);
  return violations.flatMap((v) => v.nodes.map((n) => `${v.id}: ${v.help}: ${n.html.slice(0, 200)}: ${n.any.concat(n.all, n.none).map((c) => c.message).join("; ").slice(0, 300)}`));
}

/** Returns the findings of axe-core in the light theme, and those about colours, the only difference, in the dark theme. */
export async function axeInBoth(page) {
  const found = [];
  for (const [colorScheme, rules] of [["dark", ["color-contrast", "link-in-text-block"]], ["light"]]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" }); // otherwise colours would still be in transition
    found.push(...(await axe(page, rules)).map((f) => `${colorScheme}: ${f}`));
  }
  return found;
}
