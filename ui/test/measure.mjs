// Measures what the design promises, over loopback: MCPPROXY_BIN=… node test/measure.mjs [records].
// First paint ≤ 300 ms, first view ≤ 90 KB, a filter's rows ≤ 100 ms, no frame over 16 ms while
// a long log scrolls, twenty tabs. It prints figures and judges nothing: machines differ.
import { Daemon } from "./browser/daemon.mjs";
import { launch, settled } from "./browser/harness.mjs";

const records = Number(process.argv[2] ?? 20_000);
const at = (sorted, p) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * p))];
const show = (what, values, unit = "ms") => {
  const s = [...values].sort((a, b) => a - b);
  console.log(`${what.padEnd(44)} median ${at(s, 0.5).toFixed(1)} ${unit}, p95 ${at(s, 0.95).toFixed(1)}, p99 ${at(s, 0.99).toFixed(1)}, most ${s.at(-1).toFixed(1)} (${s.length})`);
};

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
}

async function fill() {
  const begun = Date.now();
  const calls = [["call_tool_read", "notes:list_notes", {}], ["call_tool_read", "weather:current_weather", { city: "Lisbon" }], ["call_tool_write", "notes:write_note", { title: "trip", text: "x" }]];
  await Promise.all(Array.from({ length: 16 }, async (_, n) => {
    const agent = await daemon.client(["Cursor", "claude-code", "Codex"][n % 3]);
    for (let i = 0; i < records / 16; i++) {
      const [tool, name, args] = calls[(i + n) % calls.length];
      await agent.call(tool, { name, args });
      // Refusals alike are one record, and have a number of their own: a few are enough.
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
  const cold = [], warm = [], bytes = [];
  for (let i = 0; i < 10; i++) {
    const context = await browser.newContext();
    const page = await signedIn(context, "overview");
    const read = () => page.evaluate(() => ({
      paint: performance.getEntriesByName("first-contentful-paint")[0]?.startTime,
      bytes: [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")].filter((e) => e.name.includes("/ui/")).reduce((sum, e) => sum + e.encodedBodySize, 0),
    }));
    const first = await read();
    cold.push(first.paint);
    bytes.push(first.bytes / 1024);
    await page.reload();
    await settled(page);
    warm.push((await read()).paint);
    await context.close();
  }
  show("first paint, nothing cached", cold);
  show("first paint, reloaded", warm);
  show("first view, compressed", bytes, "KB");
}

async function scrolling() {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await signedIn(context, "activity");
  const box = page.locator("#main .log").first();
  if (!(await box.count())) return console.log("scrolling: Activity has no table yet");
  const frames = (by) => box.evaluate((el, by) => new Promise((done) => {
    const took = [];
    let last = performance.now();
    const frame = (now) => {
      took.push(now - last);
      last = now;
      el.scrollTop += by;
      if (took.length < 300 && el.scrollTop + el.clientHeight < el.scrollHeight) requestAnimationFrame(frame);
      else done(took.slice(1));
    };
    requestAnimationFrame(frame);
  }), by);
  show("frames, scrolling by rows", await frames(64));
  show("frames, scrolling by screens", await frames(900));
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
