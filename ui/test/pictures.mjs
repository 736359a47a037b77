// Makes the pictures of docs/pictures from the real UI: MCPPROXY_BIN=… npm run shots [directory].
// They show test/browser/world.mjs: the demo's servers, a poisoned one, a crashing one.
// Sizes are fixed, times and ids differ. All pictures together may have 2 MB.
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Daemon } from "./browser/daemon.mjs";
import { desktop, launch, phone, settled } from "./browser/harness.mjs";
import { pages } from "./browser/pages.mjs";
import { startWorld } from "./browser/world.mjs";
import { demoLines, terminalPicture } from "./terminal.mjs";

const most = 2 << 20; // bytes
const directory = process.argv[2] ?? fileURLToPath(new URL("../../docs/pictures", import.meta.url));

const world = await startWorld();
const empty = await Daemon.run({ home: {
  ".claude.json": '{"mcpServers": {"playwright": {"command": "npx", "args": ["-y", "@playwright/mcp", "--headless"]}}}',
  ".cursor/mcp.json": '{"mcpServers": {"github": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"], "env": {"GITHUB_TOKEN": "ghp_0123456789abcdefghijklmnopqrstuvwxyz"}}, "notion": {"url": "https://mcp.notion.com/mcp"}}}',
} });
const browser = await launch();
let total = 0;

try {
  await mkdir(directory, { recursive: true });
  for (const old of await readdir(directory)) if (old.endsWith(".webp")) await rm(join(directory, old));
  const newest = async (filter) => (await world.api("GET", `/activity?limit=1&${filter}`)).activities[0].id;
  const views = [
    ...pages.map((p) => [p.name, p.name]),
    ["approvals-poisoned", "approvals?id=issues:create_issue"], ["approvals-loosened", "approvals?id=issues:close_issue"],
    ["activity-call", `activity?id=${await newest("type=tool_call&status=success&server=weather")}`], ["activity-refused", `activity?id=${await newest("type=policy_decision&server=notes")}`],
    ["tools-search", "tools?q=write+a+note"], ["tools-one", "tools?id=notes:delete_note"], ["servers-crashed", "servers?id=calendar"],
    ["clients-connect", "clients?id=cursor"],
  ];
  const lines = await demoLines(process.env.MCPPROXY_BIN);
  for (const colorScheme of ["light", "dark"]) {
    await keep(`terminal-${colorScheme}`, await terminalPicture(browser, lines, colorScheme));
    await series(world, { ...desktop, colorScheme }, async (take) => {
      for (const [name, address] of views) await take(`${name}-${colorScheme}`, address);
      await take(`search-${colorScheme}`, "overview", (page) => page.keyboard.press("Control+k"));
    });
    await series(empty, { ...desktop, colorScheme }, (take) => take(`first-run-${colorScheme}`, "overview"));
    await series(world, { ...phone, colorScheme }, async (take) => {
      for (const name of ["overview", "approvals", "activity"]) await take(`${name}-phone-${colorScheme}`, name);
    });
  }
  console.log(`${(total / 1024).toFixed(0)} KB in ${directory}`);
  if (total > most) throw new Error(`the pictures have ${total} bytes, more than ${most}`);
} finally {
  await browser.close();
  await world.close();
  await empty.close();
}

/** Opens a page of the daemon and calls work with take(name, address below /ui/, action on the page). */
async function series(daemon, context, work) {
  const c = await browser.newContext({ locale: "en-GB", timezoneId: "UTC", reducedMotion: "reduce", ...context });
  // Files have the paths that a user would have.
  await c.route(/\/api\/v1\/(clients|servers\/import|status)/, async (r) => {
    const response = await r.fetch({ headers: { "X-API-Key": daemon.key, "Content-Type": "application/json" } });
    await r.fulfill({ response, body: (await response.text()).replaceAll(daemon.dir, "/home/you") });
  });
  const page = await c.newPage();
  const cdp = await c.newCDPSession(page);
  await page.goto(`${daemon.url}/ui/overview#${await daemon.code()}`);
  await settled(page);
  await work(async (name, address, act) => {
    await page.goto(`${daemon.url}/ui/${address}`);
    await settled(page);
    await page.getByText("Live", { exact: true }).first().waitFor({ timeout: 3000 }).catch(() => {}); // not on phones
    await act?.(page);
    await page.evaluate(() => document.fonts.ready);
    await settled(page);
    const { data } = await cdp.send("Page.captureScreenshot", { format: "webp", quality: 70 });
    await keep(name, Buffer.from(data, "base64"));
  });
  await c.close();
}

/** Writes a picture, and counts it. */
async function keep(name, picture) {
  total += picture.length;
  await writeFile(join(directory, `${name}.webp`), picture);
}
