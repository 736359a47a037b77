// Activity: the records, and their verification.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { axeInBoth, phone, scene, until } from "./harness.mjs";

const intent = (operation_type, reason) => ({ operation_type, reason });

// A call, a refusal and a failure of an agent.
async function work(daemon) {
  await daemon.tools("notes:list_notes", "notes:delete_note");
  const agent = await daemon.client("Story Agent", "2.4.1");
  const call = (lane, name, args, reason) => agent.call(`call_tool_${lane}`, { name, args, intent: intent(lane, reason) }).catch((e) => e);
  await call("write", "notes:write_note", { title: "shopping", text: "ghp_" + "a1B2".repeat(9) }, "the user asked to keep it");
  await call("write", "notes:delete_note", { title: "shopping" }, "tidy up");
  await call("destructive", "notes:delete_note", { title: "nope" }, "tidy up harder");
  await call("read", "notes:list_notes", {}, "look for the shopping list");
  return call;
}

const row = (page, text) => page.locator("tbody tr[data-i]", { hasText: text }).first();
const top = (page) => page.locator("tbody tr[data-i='0']");
const drawer = (page) => page.locator("aside.drawer");

test("the log is read, filtered and verified by keyboard", async (t) => {
  const { page, daemon, visit, api } = await scene(t, { demo: true, context: { viewport: { width: 1440, height: 900 }, permissions: ["clipboard-read", "clipboard-write"] } });
  await work(daemon);
  await visit("activity");
  await row(page, "look for the shopping list").waitFor();
  assert.match(await page.locator("h1").innerText(), /^[\d,]+ records$/);
  await until("the counts", async () => /3 calls, 2 ok, 1 failed; 1 refused/.test(await page.locator(".lead").innerText()));
  assert.deepEqual(await axeInBoth(page), []);

  // A filter is found by its name, and is in the address.
  await page.keyboard.press("f");
  await page.getByLabel("Find a filter").fill("delete_n");
  await page.getByRole("checkbox", { name: "notes:delete_note" }).waitFor();
  assert.deepEqual(await axeInBoth(page), []);
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  assert.match(page.url(), /tool=notes:delete_note/);
  await page.getByRole("heading", { name: /^2 of [\d,]+ records$/ }).waitFor();

  // Alt and a click add the value of a cell.
  await row(page, "refused").locator(".c-status").click({ modifiers: ["Alt"] });
  assert.match(page.url(), /status=blocked/);
  await page.getByRole("heading", { name: /^1 of/ }).waitFor();
  assert.match(await page.locator(".filters").innerText(), /Outcome is refused/);

  // A refusal shows first which check decided, and which call would be allowed.
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await drawer(page).getByText("To allow this").waitFor();
  assert.match(await drawer(page).locator(".body section").first().innerText(), /^Decision[\s\S]*Refused\.[\s\S]*call_tool_destructive and operation type destructive\.[\s\S]*hints/);
  await drawer(page).getByText("4 calls").waitFor();
  assert.match(await drawer(page).innerText(), /“tidy up”[\s\S]*Story Agent 2\.4\.1, an agent/);
  assert.deepEqual(await axeInBoth(page), []);
  await drawer(page).getByRole("button", { name: "Copy as command" }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `mcpproxy call tool-write notes:delete_note --args '{"title":"shopping"}' --reason 'tidy up'`);
  await page.keyboard.press("c");
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /\/ui\/activity\?since=30d&id=01/);

  // All records of the session; secrets are shown as boxes.
  await drawer(page).getByRole("button", { name: "View session" }).click();
  await page.getByRole("heading", { name: /^4 of/ }).waitFor();
  await row(page, "write_note").getByRole("link").click();
  await drawer(page).locator(".masked").first().waitFor();
  assert.equal((await page.content()).includes("ghp_a1B2"), false);
  await drawer(page).getByText("Not verified yet.").waitFor();
  await drawer(page).getByRole("button", { name: "Verify" }).click();
  await drawer(page).getByText("Unchanged since it was written.").waitFor();
  await drawer(page).getByRole("group", { name: "Result format" }).getByRole("button", { name: "JSON" }).click();
  assert.match(await drawer(page).getByLabel("result", { exact: true }).innerText(), /"content"/);
  await page.keyboard.press("k"); // the newer record
  await drawer(page).getByText("“tidy up”").waitFor();
  await page.keyboard.press("Escape");
  await drawer(page).waitFor({ state: "detached" });

  // Back undoes the filter. If nothing matches, the page names the filters.
  await page.goBack();
  await page.goBack();
  await visit("activity?lane=destructive&q=nowhere");
  await page.getByText("No records match these filters").waitFor();
  assert.match(await page.locator(".empty").innerText(), /Lane is destructive, and text contains “nowhere”, in the last 15 minutes\./);
  await page.getByRole("button", { name: "Clear filters" }).click();
  await row(page, "look for the shopping list").waitFor();

  // The search covers arguments, responses and reasons.
  await page.keyboard.press("/");
  await page.keyboard.type("harder");
  await page.getByRole("heading", { name: /^1 of/ }).waitFor();
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export" }).click();
  await page.getByRole("menuitem", { name: /with arguments/ }).click();
  const lines = (await readFile(await (await download).path(), "utf8")).trim().split("\n").map((l) => JSON.parse(l));
  assert.deepEqual(lines.filter((r) => r.id).map((r) => [r.tool_name, r.status, r.arguments.title]), [["delete_note", "error", "nope"]]);
  const { total } = await api("GET", "/activity?limit=1");
  await page.getByRole("button", { name: "Verify", exact: true }).click();
  await page.locator(".verified", { hasText: "Unchanged since it was written." }).waitFor();
  assert.match(await page.locator(".verified").innerText(), new RegExp(`${total} records`));
});

test("new records appear at the top, but do not move the list while the user reads", async (t) => {
  const { page, daemon, visit } = await scene(t, { demo: true });
  const call = await work(daemon);
  await visit("activity?server=notes&lane=read");
  await row(page, "look for the shopping list").waitFor();

  await call("read", "notes:list_notes", {}, "first");
  await top(page).getByText("first").waitFor();
  await call("write", "notes:write_note", { title: "a", text: "b" }, "fits no filter");

  // While a record is open, new records wait.
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await drawer(page).waitFor();
  await call("read", "notes:list_notes", {}, "second");
  await call("read", "notes:list_notes", {}, "third");
  await page.getByRole("button", { name: "2 newer" }).waitFor();
  await page.keyboard.press("Escape");
  await drawer(page).waitFor({ state: "detached" });
  await top(page).getByText("third").waitFor();
  assert.equal(await page.getByText("fits no filter").count(), 0);

  // They also wait while the list is paused.
  await page.keyboard.press("l");
  await call("read", "notes:list_notes", {}, "fourth");
  await page.getByRole("button", { name: "1 newer" }).waitFor();
  await top(page).getByText("third").waitFor();
  await page.keyboard.press("l");
  await top(page).getByText("fourth").waitFor();

  // Many records at the same time all appear, in the order of the log.
  await visit("activity?type=tool_call");
  await top(page).getByText("fourth").waitFor();
  await Promise.all(Array.from({ length: 150 }, (_, i) => call("read", "notes:list_notes", {}, `storm ${i}`)));
  const { activities, total } = await daemon.api("GET", "/activity?type=tool_call&limit=5");
  await page.getByRole("heading", { name: new RegExp(`^${total} of`) }).waitFor();
  for (const [i, r] of activities.entries()) assert.equal(await page.locator(`tbody tr[data-i='${i}'] .c-why`).innerText(), r.metadata.intent.reason);
  assert.equal(await page.locator("tbody .res.run").count(), 0);
});

test("offline, the content stays, and missed records appear afterwards", async (t) => {
  const { page, daemon, visit } = await scene(t, { demo: true, allow: [/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE/] });
  await work(daemon);
  await visit("activity");
  await row(page, "look for the shopping list").waitFor();
  await daemon.kill();
  await page.getByText("Could not reach MCPProxy.").first().waitFor();
  await page.waitForEvent("requestfailed"); // the retry fails
  await row(page, "look for the shopping list").waitFor();
  await daemon.start();
  await row(page, "started").waitFor();
  await row(page, "look for the shopping list").waitFor();
});

test("on a phone the record fills the page", async (t) => {
  const { page, daemon, visit } = await scene(t, { demo: true, context: phone });
  await work(daemon);
  await visit("activity");
  await row(page, "write_note").getByRole("link").tap();
  await drawer(page).getByText("the user asked to keep it").waitFor();
  assert.equal(await page.locator("table").isVisible(), false);
  assert.deepEqual(await axeInBoth(page), []);
  await drawer(page).getByRole("button", { name: "Close" }).tap();
  await page.locator("table").waitFor();
  assert.deepEqual(await axeInBoth(page), []);
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
});

test("an empty log waits, and the first call appears", async (t) => {
  const { page, daemon, visit } = await scene(t, { demo: true });
  await visit("activity");
  await page.getByRole("heading", { name: "Waiting for the first call" }).waitFor();
  await page.locator(".listening", { hasText: `${daemon.url}/mcp` }).waitFor();
  await work(daemon);
  await top(page).getByText("look for the shopping list").waitFor();
  await page.getByRole("heading", { name: "Waiting for the first call" }).waitFor({ state: "detached" });
  await visit("activity?client=Nobody");
  await page.getByText("No records match these filters").waitFor();
  assert.match(await page.locator(".empty").innerText(), /Client is Nobody, in the last 15 minutes/);
});

test("the row under the pointer and the open row are marked over their whole height", async (t) => {
  const { page, daemon, visit } = await scene(t, { demo: true });
  await daemon.tools("notes:list_notes");
  const agent = await daemon.client("Cursor");
  for (let i = 0; i < 3; i++) await agent.call("call_tool_read", { name: "notes:list_notes" });
  await visit("activity");
  const row = page.locator("tbody tr[data-i]", { hasText: "list_notes" }).first();
  const marked = () => row.evaluate((tr) => {
    const clear = "rgba(0, 0, 0, 0)";
    const of = (el) => getComputedStyle(el).backgroundColor;
    return { row: of(tr) !== clear, cells: [...tr.children].filter((td) => of(td) !== clear && td.clientHeight < tr.clientHeight).length };
  });
  assert.deepEqual(await marked(), { row: false, cells: 0 });
  await row.hover();
  assert.deepEqual(await marked(), { row: true, cells: 0 });
  await row.click();
  await page.locator("aside.drawer").waitFor();
  await page.mouse.move(0, 0);
  assert.deepEqual(await marked(), { row: true, cells: 0 });
});

test("filters have a name in this browser, and the range fits the records, or is all", async (t) => {
  const { page, daemon, visit } = await scene(t, { demo: true });
  await work(daemon);
  await visit("activity?status=blocked");
  await page.getByRole("button", { name: "Last 15 minutes" }).click(); // the log is newer than that
  await page.getByRole("menuitemradio", { name: "All records" }).click();
  await until("the range is in the address", () => /since=all/.test(page.url()));
  await page.getByText(/Since the first record/).waitFor();
  const saved = page.getByRole("dialog", { name: "Saved filters" });
  const open = () => page.locator(".filters").getByRole("button", { name: "Saved filters" }).click();
  await open();
  await saved.getByLabel("Filter name").fill("Refused so far");
  await page.keyboard.press("Enter");
  await saved.getByRole("link", { name: "Refused so far" }).waitFor();
  assert.deepEqual(await axeInBoth(page), []);
  await page.keyboard.press("Escape");

  await visit("activity");
  await open();
  await saved.getByRole("link", { name: "Refused so far" }).click();
  await until("it is in force", () => /status=blocked/.test(page.url()) && /since=all/.test(page.url()));
  await until("the menu is called like it", async () => /Refused so far/.test(await page.locator(".filters").innerText()));
  await open();
  await saved.getByRole("button", { name: "Remove Refused so far" }).click();
  await saved.getByRole("link").waitFor({ state: "detached" });
  await page.reload();
  await open();
  assert.equal(await saved.getByRole("link").count(), 0);
  await page.keyboard.press("Escape");
});
