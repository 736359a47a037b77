// The Approvals page against a real daemon and a server that is out for no good: a poisoned
// definition, a hint that is loosened, one that changes while it is looked at, hundreds of new
// tools, a server whose launch waits. The caller gives page (signed in, 1440 px wide), api(method,
// path, body) → JSON of /api/v1, and base, the address of /ui/.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const hostile = fileURLToPath(new URL("servers/hostile.mjs", import.meta.url));
const many = 300;

async function until(what, test) {
  for (let i = 0; i < 150; i++) {
    const found = await test();
    if (found) return found;
    await new Promise((r) => setTimeout(r, 100));
  }
  throw new Error("It did not come to pass: " + what);
}

export async function story({ page, api, base }) {
  const dir = mkdtempSync(join(tmpdir(), "approvals-"));
  const stage = (server, n) => writeFileSync(join(dir, server), String(n));
  const add = (name, tools, more) => api("POST", "/servers", { name, command: process.execPath, args: [hostile, join(dir, name), String(tools)], ...more });
  const tool = (name) => api("GET", `/servers/github/tools/${name}`);
  const waiting = () => api("GET", "/approvals");
  const detail = (text) => page.locator(".review h1", { hasText: text }).waitFor();
  const button = (name) => page.locator(".acts-bar").getByRole("button", { name });
  const settled = () => page.waitForTimeout(500); // decisions rest until what is shown has been there for a moment
  const toast = (text) => page.locator(".toast", { hasText: text }).last().waitFor();
  try {
    stage("github", 1);
    stage("reports", 2);
    await add("github", 0, { trust: "scan" });
    await add("reports", many, { trust: "manual" });
    await until("both servers list their tools", async () => (await waiting()).total_tools >= many && (await api("GET", "/tools?server=github")).tools.length === 4);
    stage("github", 2);
    await until("the changes wait", async () => (await waiting()).tools.some((t) => t.name === "github:put_secret"));

    // A poisoned one: what it says is text, what cannot be seen is named, and Block is what is offered.
    await page.goto(base + "approvals?id=github:create_issue");
    await detail("create_issue");
    await page.getByText("Looks poisoned.").waitFor();
    assert.match(await page.locator(".verdict").innerText(), /Two of six findings are of a kind that is only seen in attacks/);
    assert.equal(await page.locator(".words .cp").filter({ hasText: "U+200B" }).count(), 2);
    assert.equal(await page.locator("important, .words img, .words a:not(.no)").count(), 0);
    assert.ok((await page.locator(".words ins").first().textContent()).includes("<IMPORTANT>"));
    assert.deepEqual(await page.locator(".words a.no").allInnerTexts(), ["1", "2", "3", "4", "5", "6"]);
    assert.equal(await page.locator(".hit.block", { hasText: "Before every call, " }).count(), 1);
    assert.match(await page.locator(".params").first().innerText(), /context\s+not there\s+string, required/);
    assert.match(await button(/Block this definition/).getAttribute("class"), /danger/);
    await settled();
    await page.keyboard.press("a");
    const approve = page.locator("dialog").getByRole("button", { name: "Approve" });
    await approve.waitFor();
    assert.ok(await approve.isDisabled(), "nothing is approved before the name is typed");
    await page.keyboard.press("Escape");
    await page.keyboard.press("x");
    await toast("Blocked github:create_issue");
    assert.equal((await tool("create_issue")).trust.reason, "blocked");

    // The next one is open: a hint that is loosened. One key keeps it destructive.
    await detail("write_file");
    await page.getByText("It calls itself more harmless than before.").waitFor();
    assert.match(await page.locator(".move").innerText(), /destructive[^]*write/);
    assert.match(await button(/Approve, keep it destructive/).getAttribute("class"), /main-act/);
    await settled();
    await page.keyboard.press("K");
    await toast("it counts as destructive");
    const kept = await tool("write_file");
    assert.equal(kept.call_with, "call_tool_destructive");
    assert.equal(kept.trust.reason, undefined);

    // One that becomes another while somebody decides: the old answer is refused, the new text shown.
    await detail("query_docs");
    await page.locator(".words", { hasText: "by words" }).first().waitFor();
    await settled();
    const before = (await tool("query_docs")).trust.fingerprint;
    let release;
    const held = new Promise((r) => (release = r));
    await page.route("**/query_docs/diff", async (route) => (await held, route.continue()));
    stage("github", 3);
    await until("the new definition", async () => (await tool("query_docs")).trust.fingerprint !== before);
    const refused = page.waitForResponse((r) => r.url().endsWith("/query_docs/approve"));
    await page.keyboard.press("a");
    assert.equal((await refused).status(), 409);
    release();
    await page.getByText("It has changed once more. This is what it says now.").waitFor();
    await page.locator(".words ins", { hasText: "newest first" }).waitFor();
    assert.ok(await button(/^Approve/).isDisabled(), "nobody approves what has just come");
    await page.unroute("**/query_docs/diff");
    assert.equal((await tool("query_docs")).trust.reason, "changed");
    await until("it can be decided about", () => button(/^Approve/).isEnabled());
    await page.keyboard.press("a");
    await toast("Approved github:query_docs");
    assert.equal((await tool("query_docs")).trust.reason, undefined);
    await detail("list_pages");
    await page.keyboard.press("Control+z");
    await detail("query_docs");
    assert.ok((await tool("query_docs")).trust.reason, "it waits again");

    // j and k go through the list; hundreds are one row, which opens when the keys go there.
    await page.locator(".inbox li a", { hasText: "list_pages" }).click();
    await detail("list_pages");
    await page.keyboard.press("j");
    await detail("triage");
    await page.keyboard.press("k");
    await detail("list_pages");
    const fold = page.locator(".fold", { hasText: "reports" });
    assert.equal(await fold.getAttribute("aria-expanded"), "false");
    await fold.focus();
    await page.keyboard.press("Enter");
    assert.ok((await page.locator(".inbox li a").count()) < 150, "a long group is drawn in parts");

    // All that is clean at once, and back.
    const clean = page.getByRole("button", { name: /^Approve [\d,]+ clean$/ });
    const n = Number((await clean.innerText()).replace(/\D/g, ""));
    assert.ok(n > many, `more than ${many} are clean: ${n}`);
    const total = async () => waiting().then((w) => w.total_tools + w.total_offers);
    const all = await total();
    await clean.click();
    await toast(`Approved ${n}.`);
    const left = await waiting();
    assert.ok(left.tools.every((t) => t.verdict !== "clean" || t.loosened?.length || t.reason === "blocked"), "only what is to be looked at is left");
    await page.keyboard.press("Control+z");
    await until("all of them wait again", async () => (await total()) === all);

    // A server: first its launch, then what it says.
    stage("tasks", 2);
    await add("tasks", 2, { quarantined: true, env: { TASKS_MODE: "core" } });
    await page.goto(base + "approvals?id=tasks");
    await page.getByText("Nothing of it was started or contacted.").waitFor();
    assert.match(await page.locator(".cmd").innerText(), /hostile\.mjs/);
    assert.match(await page.locator(".review .defs").first().innerText(), /TASKS_MODE/);
    await settled();
    await button(/Start it for the review/).click();
    await page.getByText("It runs for the review only; no agent sees it.").waitFor();
    await page.locator(".defined > li").first().waitFor();
    assert.match(await page.locator(".verdict").innerText(), /Looks poisoned/);
    await page.locator(".defined button", { hasText: "create_issue" }).click();
    await page.locator(".opened .words .cp").first().waitFor();
    assert.equal(await page.getByRole("button", { name: /Approve anyway/ }).count(), 1);

    // On a phone list and detail are pages.
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(base + "approvals");
    await page.locator(".fold", { hasText: "github" }).click();
    await page.locator(".inbox li a", { hasText: "list_pages" }).click();
    await detail("list_pages");
    assert.ok(!(await page.locator(".pane-list").isVisible()));
    await page.locator(".back").click();
    await page.locator(".inbox").waitFor();
    assert.equal(new URL(page.url()).search, "");
  } finally {
    for (const name of ["github", "reports", "tasks"]) await api("DELETE", "/servers/" + name).catch(() => {});
    rmSync(dir, { recursive: true, force: true });
  }
}
