// Takes pictures of pages in both themes at 1440 and 390 px, and lists what axe-core finds.
// node shots.mjs <address of /ui/> <directory> [page …]; MCPPROXY_KEY signs in to a dev server.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [address, directory, ...pages] = process.argv.slice(2);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
let bad = 0;
for (const [width, height, touch] of [[1440, 900, false], [390, 844, true]]) {
  for (const theme of ["light", "dark"]) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme, hasTouch: touch, isMobile: touch });
    await context.addInitScript((key) => key && sessionStorage.setItem("mcpproxy.dev.key", key), process.env.MCPPROXY_KEY ?? "");
    const page = await context.newPage();
    page.on("console", (m) => m.type() === "error" && console.log(`${width} ${theme} console: ${m.text()}`));
    page.on("pageerror", (e) => console.log(`${width} ${theme} error: ${e.stack}`));
    for (const name of pages.length ? pages : ["overview"]) {
      await page.goto(new URL(name, address).href);
      await page.waitForSelector("h1, h2");
      await page.waitForTimeout(700);
      await page.screenshot({ path: `${directory}/${name.replace(/[^a-z0-9]+/gi, "-")}-${theme}-${width}.png` });
      await page.evaluate(axe);
      const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
      for (const v of found.violations) {
        bad++;
        console.log(`${name} ${width} ${theme} axe: ${v.id}: ${v.help}; ${v.nodes.slice(0, 2).map((n) => n.html.slice(0, 160)).join(" | ")}`);
      }
    }
    await context.close();
  }
}
await browser.close();
process.exitCode = bad ? 1 : 0;
