// Measures the limits of the design over loopback: MCPPROXY_BIN=… node test/measure.mjs [records].
// First paint ≤ 300 ms, first view ≤ 90 KB, a filter's rows ≤ 100 ms, no frame over 16 ms while
// a long log scrolls, twenty tabs. It prints figures without a verdict: machines differ, and
// the time between two frames also depends on the screen and other processes. So a page with
// only a heading, and a plain table of 20,000 rows, are measured in the same run, as well as
// the CPU time of the page's own thread for each frame.
import { createServer } from "node:http";
import { Daemon } from "./browser/daemon.mjs";
import { launch, settled } from "./browser/harness.mjs";

const records = Number(process.argv[2] ?? 20_000);
const at = (sorted, p) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))];
const show = (what, values, unit = "ms") => {
  const s = [...values].sort((a, b) => a - b);
  console.log(`${what.padEnd(44)} median ${at(s, 0.5).toFixed(1)} ${unit}, p95 ${at(s, 0.95).toFixed(1)}, p99 ${at(s, 0.99).toFixed(1)}, most ${s.at(-1).toFixed(1)} (${s.length})`);
};

const cells = "<td>notes:list_notes<td>Cursor<td>ok<td>12 ms<td>a reason<td>read</tr>";
const plain = createServer((_, answer) => answer.setHeader("Content-Type", "text/html").end(
  `<!doctype html><style>body { margin: 0; font: 13px sans-serif } .log { height: 560px; overflow: auto } tr { height: 32px }</style><h1>Plain</h1><div class="log"><table>${Array.from({ length: 20_000 }, (_, i) => `<tr><td>${i}${cells}`).join("")}</table></div>`));
await new Promise((listening) => plain.listen(0, "127.0.0.1", listening));
const plainURL = `http://127.0.0.1:${plain.address().port}/`;
const daemon = await Daemon.run({ demo: true });
const browser = await launch();
try {
  await daemon.tools("notes:list_notes", "weather:get_forecast");
  await fill();
  await firstPaint();
  await scrolling();
  await filtering();
  await tabs();
} finally {
  await browser.close();
  await daemon.close();
  plain.close();
}

async function fill() {
  const begun = Date.now();
  const calls = [["call_tool_read", "notes:list_notes", {}], ["call_tool_read", "weather:current_weather", { city: "Lisbon" }], ["call_tool_write", "notes:write_note", { title: "trip", text: "x" }]];
  await Promise.all(Array.from({ length: 16 }, async (_, n) => {
    const agent = await daemon.client(["Cursor", "claude-code", "Codex"][n % 3]);
    for (let i = 0; i < records / 16; i++) {
      const [tool, name, args] = calls[(i + n) % calls.length];
      await agent.call(tool, { name, args });
      // Identical refusals share one record with a count: a few are enough.
      if (i % 200 === 0) await agent.call("call_tool_read", { name: "notes:delete_note", args: { title: `x${i}-${n}` } });
    }
  }));
  const { activity } = await daemon.api("GET", "/status");
  console.log(`${activity.records} records, in ${((Date.now() - begun) / 1000).toFixed(1)} s`);
}

async function signedIn(context, path) {
  const page = await context.newPage();
  await page.goto(`${daemon.url}/ui/${path}#${await daemon.code()}`);
  await settled(page);
  return page;
}

async function firstPaint() {
  const cold = [], warm = [], bytes = [], nothing = [];
  const painted = (page) => page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  for (let i = 0; i < 20; i++) {
    const context = await browser.newContext();
    const page = await signedIn(context, "overview");
    cold.push(await painted(page));
    bytes.push((await page.evaluate(() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].filter((e) => e.name.includes("/ui/")).reduce((sum, e) => sum + e.encodedBodySize, 0))) / 1024);
    await page.reload();
    await settled(page);
    warm.push(await painted(page));
    await page.goto(daemon.url + "/healthz");
    await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length);
    nothing.push(await painted(page));
    await context.close();
  }
  show("first paint, nothing cached", cold);
  show("first paint, reloaded", warm);
  show("first paint of one line of text", nothing);
  show("first view, compressed", bytes, "KB");
}

// Scrolls by a number of px per frame. Returns the time between frames, and the CPU time of the page's thread for each, in ms.
async function frames(page, by) {
  const tracing = await browser.newBrowserCDPSession();
  const events = [];
  tracing.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  await tracing.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories: ["toplevel", "devtools.timeline"] } });
  const between = await page.locator(".log").first().evaluate((el, by) => new Promise((done) => {
    const took = [];
    let last = performance.now();
    el.scrollTop = 0;
    const frame = (now) => {
      took.push(now - last);
      last = now;
      el.scrollTop += by;
      if (took.length < 300 && el.scrollTop + el.clientHeight < el.scrollHeight) requestAnimationFrame(frame);
      else done(took.slice(1));
    };
    requestAnimationFrame(frame);
  }), by);
  await new Promise((complete) => {
    tracing.once("Tracing.tracingComplete", complete);
    void tracing.send("Tracing.end");
  });
  await tracing.detach();
  const thread = (e) => `${e.pid}:${e.tid}`;
  const animation = Map.groupBy(events.filter((e) => e.name === "FireAnimationFrame"), thread);
  const [main, fired] = [...animation].sort((a, b) => b[1].length - a[1].length)[0];
  // Callbacks of one frame run without a pause between them.
  const begins = fired.map((e) => e.ts).sort((a, b) => a - b).filter((ts, i, all) => i === 0 || ts - all[i - 1] > 2000);
  const work = begins.map(() => 0);
  for (const e of events) {
    if (thread(e) !== main || e.ph !== "X" || e.name !== "ThreadControllerImpl::RunTask") continue;
    const i = begins.findIndex((ts) => ts >= e.ts);
    if (i >= 0) work[i] += (e.tdur ?? 0) / 1000;
  }
  return { between, work: work.slice(1) };
}

async function scrolling() {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const reference = await context.newPage();
  await reference.goto(plainURL);
  for (const [what, by] of [["by rows", 64], ["by screens", 900]]) show(`between frames, plain table, ${what}`, (await frames(reference, by)).between);
  await reference.close();
  const page = await signedIn(context, "activity");
  for (const [what, by] of [["by rows", 64], ["by screens", 900]]) {
    const { between, work } = await frames(page, by);
    show(`between frames, the log, ${what}`, between);
    show(`work for a frame, the log, ${what}`, work);
  }
  const box = page.locator("#main .log").first();
  const jumps = [];
  for (let i = 0; i < 20; i++) {
    jumps.push(await box.evaluate((el, part) => new Promise((done) => {
      const begun = performance.now();
      el.scrollTop = el.scrollHeight * part;
      const look = () => (el.querySelector("tr[data-i]") && !el.querySelector("tr.skel") ? done(performance.now() - begun) : requestAnimationFrame(look));
      requestAnimationFrame(() => requestAnimationFrame(look));
    }), ((i * 7) % 20) / 20));
  }
  show("jump anywhere, until its rows are there", jumps);
  await context.close();
}

async function filtering() {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await signedIn(context, "activity");
  const table = page.locator("#main table[aria-rowcount]").first();
  if (!(await table.count())) return;
  const took = [];
  for (let i = 0; i < 20; i++) {
    await settled(page); // users look at the result before they change it
    await page.waitForTimeout(500);
    took.push(await page.evaluate((query) => new Promise((done) => {
      const count = () => document.querySelector("#main table[aria-rowcount]")?.getAttribute("aria-rowcount");
      const before = count();
      const begun = performance.now();
      history.pushState(null, "", "/ui/activity" + query);
      dispatchEvent(new PopStateEvent("popstate"));
      const look = () => (count() !== before || performance.now() - begun > 5000 ? done(performance.now() - begun) : requestAnimationFrame(look));
      look();
    }), ["?status=blocked", ""][i % 2]));
  }
  show("filter of the log, until its rows are there", took);
  await context.close();
}

async function tabs() {
  const context = await browser.newContext();
  const took = [];
  const first = await signedIn(context, "overview");
  for (let i = 0; i < 19; i++) {
    const page = await context.newPage();
    const begun = performance.now();
    await page.goto(`${daemon.url}/ui/activity`);
    const there = await page.locator("#main h1:visible").waitFor({ timeout: 5000 }).then(() => true, () => false);
    if (!there) {
      console.log(`tab ${i + 2} of 20 shows nothing within 5 s`);
      break;
    }
    took.push(performance.now() - begun);
  }
  show("twenty tabs, each until its heading", took);
  console.log(`the first tab still works: ${await first.evaluate(() => fetch("/healthz").then((r) => r.ok))}`);
  await context.close();
}
