// The tools page: a user searches as an agent does, sees the reasons, calls a tool,
// corrects its hints, disables and enables it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axeInBoth, Daemon, phone, scene, until } from "./harness.mjs";

const issues = {
  tools: [
    { name: "create_issue", description: "Opens an issue in a repository.\nUse it for bugs.", inputSchema: { type: "object", required: ["repo", "number"], properties: {
      repo: { type: "string", description: "Owner and name" }, number: { type: "integer" }, urgent: { type: "boolean" }, state: { enum: ["open", "closed"] }, labels: { type: "array", items: { type: "string" } },
      place: { type: "object", properties: { x: { type: "number" } } }, note: { type: "string" },
    } } },
    { name: "list_issues", description: "Lists the issues of a repository\u200b.", inputSchema: { type: "object", properties: {} }, annotations: { readOnlyHint: true } },
    { name: "delete_issue", description: "Deletes an issue of a repository.", inputSchema: { type: "object", required: ["id"], properties: { id: { type: "string" } } }, annotations: { destructiveHint: true } },
    { name: "merge", description: "Merges a branch.", inputSchema: { oneOf: [{ type: "object" }] }, annotations: { readOnlyHint: false } },
  ],
  errors: { merge: { code: -32000, message: "There are conflicts in 3 files" } },
};
const many = { tools: Array.from({ length: 400 }, (_, i) => ({ name: `tool_${i}`, description: `Does thing ${i}.`, inputSchema: { type: "object" }, annotations: { readOnlyHint: true } })) };

const open = { trust: "auto", quarantined: false };
const begin = async (t, more = {}) => {
  const daemon = await Daemon.run({ scripts: { issues, many, held: issues }, servers: { issues: open, many: open, held: { trust: "manual", quarantined: false } } });
  const s = await scene(t, { daemon, at: "tools", ...more });
  t.after(() => daemon.close()); // after the page, which would report a missing daemon
  await daemon.tools("issues:create_issue", "many:tool_399", "held:merge");
  return s;
};

test("the results that an agent gets, and the reasons", async (t) => {
  const { page } = await begin(t);
  await page.getByRole("heading", { level: 1, name: /of 408 tools callable/ }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("open a bug report for the repository");
  const first = page.locator(".hits li").first();
  await first.getByText("issues:create_issue").waitFor();
  await until("the words of the whole question are marked", async () => (await first.locator("mark").allInnerTexts()).join() === "Opens,issue,repository");
  assert.match(await page.locator(".said").innerText(), /matches\. An agent gets/);
  await page.locator(".locked").getByText("needs review").first().waitFor();
  assert.match(await page.locator(".locked .btn").first().getAttribute("href"), /\/ui\/approvals\?id=held:/);
  assert.match(page.url(), /q=open\+a\+bug/);
  // Esc empties the field, and all tools are there again.
  await page.keyboard.press("Escape");
  await page.locator("table.tools").waitFor();
  assert.doesNotMatch(page.url(), /q=/);
});

test("a query in the address, its position, another lane, no results", async (t) => {
  const { page, visit } = await begin(t);
  await visit("tools?q=repository+issue");
  await page.locator(".hits li").first().waitFor();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Search match, rank 1" }).waitFor();
  await page.keyboard.press("j");
  await page.getByRole("heading", { name: "Search match, rank 2" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".drawer").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Any lane" }).click();
  await page.getByRole("menuitemradio", { name: "destructive" }).click();
  await until("one is left", async () => (await page.locator(".hits li").count()) === 1);
  await visit("tools?q=zzzqqq");
  await page.getByText("No matching tools").waitFor();
  await page.getByText("Try other words, or the name of the tool.").waitFor();
});

test("call a tool: the form, the answer, its record", async (t) => {
  const { page, visit, api } = await begin(t);
  await visit("tools?id=issues:create_issue");
  const call = page.getByRole("button", { name: "Call as write" });
  await call.click();
  assert.equal(await page.locator('.form [aria-invalid="true"]').count(), 2);
  await page.getByLabel("repo", { exact: false }).first().fill("octo/manual");
  await page.getByLabel("number").fill("1.5");
  await call.click();
  await page.getByText("Enter a whole number").waitFor();
  await page.getByLabel("number").fill("12");
  await page.getByRole("button", { name: "5 more fields" }).click();
  await page.getByLabel("urgent").selectOption("true");
  await page.getByLabel("state").selectOption("closed");
  await page.getByLabel("labels").fill("a\nb c");
  await page.getByLabel("place").fill('{"x": 1.5}');
  await page.getByLabel("Reason (recorded)").fill("to try it");
  await call.click();
  const answer = page.locator(".answer");
  await answer.getByText("octo/manual").waitFor();
  const sent = { repo: "octo/manual", number: 12, urgent: true, state: "closed", labels: ["a", "b c"], place: { x: 1.5 } };
  assert.deepEqual(JSON.parse(await answer.locator("pre").innerText()), sent);
  await answer.getByRole("button", { name: "JSON" }).click();
  await answer.getByText('"content"').waitFor();
  const id = new URL(await answer.getByRole("link", { name: "View record" }).getAttribute("href"), page.url()).searchParams.get("id");
  const record = await api("GET", `/activity/${id}`);
  assert.deepEqual(record.arguments, sent);
  assert.equal(record.metadata.intent.reason, "to try it");
  assert.equal(record.source, "ui");
  // Form and JSON have the same values.
  await page.locator(".form").locator("..").getByRole("button", { name: "JSON" }).click();
  assert.deepEqual(JSON.parse(await page.getByRole("textbox", { name: "Arguments" }).inputValue()), sent);
  await page.getByRole("textbox", { name: "Arguments" }).fill("[1]");
  await call.click();
  await page.getByText("Arguments must be an object").waitFor();
});

test("a destructive tool asks first; failures; arguments that need JSON", async (t) => {
  const { page, visit, api } = await begin(t, { allow: [/502/] }); // from the tool that fails
  await visit("tools?id=issues:delete_issue");
  await page.getByLabel("id").fill("7");
  await page.locator(".drawer footer").getByRole("button", { name: "Call as destructive" }).click();
  const dialog = page.getByRole("dialog", { name: "Run destructive call?" });
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.equal((await api("GET", "/activity?type=tool_call")).activities.length, 0);
  await page.locator(".drawer footer").getByRole("button", { name: "Call as destructive" }).click();
  await dialog.getByRole("button", { name: "Call as destructive" }).click();
  await page.locator(".answer").getByText('"7"').waitFor();
  await visit("tools?id=issues:merge");
  await page.getByRole("button", { name: "Call as" }).click();
  await page.locator(".answer").getByText("There are conflicts in 3 files").waitFor();
  await page.locator(".answer").getByRole("link", { name: "View record" }).waitFor();
});

test("correct the hints, and undo it", async (t) => {
  const { page, visit, api } = await begin(t);
  await api("PATCH", "/servers/issues", { hint_overrides: { "zz*": { readOnlyHint: true }, "*": { openWorldHint: false } } });
  await visit("tools?id=issues:create_issue");
  await page.getByText("No hint sets the lane.").waitFor();
  const correct = async (hint, choice) => {
    await page.getByRole("button", { name: "Correct…" }).click();
    await page.getByRole("dialog").getByRole("group", { name: hint }).getByRole("button", { name: choice, exact: true }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  };
  await correct("read-only", "Yes");
  await page.getByRole("button", { name: "Call as read" }).waitFor();
  await page.locator(".hints-t").getByText("corrected by you").first().waitFor();
  const overrides = async () => Object.entries((await api("GET", "/servers/issues")).hint_overrides ?? {});
  assert.deepEqual(await overrides(), [["zz*", { readOnlyHint: true }], ["*", { openWorldHint: false }], ["create_issue", { readOnlyHint: true }]]);
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByRole("button", { name: "Call as write" }).waitFor();
  assert.deepEqual(await overrides(), [["zz*", { readOnlyHint: true }], ["*", { openWorldHint: false }]]);
});

test("disable and enable with a key, block and undo", async (t) => {
  const { page, visit, api } = await begin(t);
  await visit("tools?id=issues:list_issues");
  await page.getByText("U+200B").first().waitFor();
  const status = async () => (await api("GET", "/servers/issues/tools/list_issues")).status;
  await page.locator(".drawer").getByRole("button", { name: "Disable" }).waitFor();
  await page.keyboard.press("o");
  await page.getByText("This tool is disabled.").waitFor();
  assert.equal(await status(), "disabled_by_user");
  await page.keyboard.press("Control+z");
  await until("it is on again", async () => (await status()) === undefined);
  await page.getByRole("button", { name: "Call as read" }).waitFor();
  await page.getByRole("button", { name: "More for issues:list_issues" }).click();
  await page.getByRole("menuitem", { name: "Block definition" }).click();
  await page.getByText("This tool is blocked by you.").waitFor();
  assert.equal(await status(), "blocked");
});

test("all tools: facets, pages, filters in the address", async (t) => {
  const { page, visit } = await begin(t);
  await page.locator(".facets").getByRole("link", { name: /^held/ }).click();
  assert.match(page.url(), /server=held/);
  await until("four rows", async () => (await page.locator("table.tools tbody tr[data-i]").count()) === 4);
  await page.locator(".facets").getByRole("link", { name: /inferred/ }).click();
  await until("one row", async () => (await page.locator("table.tools tbody tr[data-i]").count()) === 1);
  await page.goBack();
  await until("four rows again", async () => (await page.locator("table.tools tbody tr[data-i]").count()) === 4);
  await visit("tools?lane=destructive&server=many");
  await page.getByText("No tools match these filters").waitFor();
  await page.getByText("Lane is destructive, and server is many.").waitFor();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.locator('tr[data-i="9"] .name').waitFor();
  // The end of a long list is loaded when it scrolls into view.
  await page.locator(".mid .log").evaluate((box) => box.scrollTo(0, box.scrollHeight));
  await page.locator('tr[data-i="407"] .name').waitFor();
  assert.ok((await page.locator("table.tools tbody tr").count()) < 120);
});

test("on a phone the tool fills the page", async (t) => {
  const { page, visit } = await begin(t, { context: phone });
  await page.locator("table.tools a.name").first().click();
  await page.locator(".drawer h2").waitFor();
  await page.locator(".drawer").getByRole("heading", { name: /^Definition/ }).waitFor();
  assert.equal(await page.locator(".mid .big").isVisible(), false);
  await visit("clients");
  await page.getByRole("heading", { level: 1, name: "No clients in the last 24 hours" }).waitFor();
});

test("the list is sorted by its headers, and selected tools are disabled together", async (t) => {
  const { page, visit, api } = await begin(t);
  await visit("tools");
  const head = (name) => page.locator("thead th", { has: page.getByRole("button", { name, exact: true }) });
  const first = () => page.locator("tbody tr[data-i='0'] .c-tool .tool").innerText();
  assert.equal(await head("Calls").getAttribute("aria-sort"), "descending");
  await head("Tool").getByRole("button").focus();
  await page.keyboard.press("Enter");
  await until("by name", async () => (await head("Tool").getAttribute("aria-sort")) === "ascending" && (await first()) === "held:create_issue");
  await page.keyboard.press("Enter");
  await until("the other way round", async () => (await head("Tool").getAttribute("aria-sort")) === "descending" && (await first()) === "many:tool_99");
  await head("Tokens").getByRole("button").click();
  await until("the largest first", async () => /create_issue/.test(await first()));
  assert.match(page.url(), /sort=-tokens/);
  assert.match(await page.locator(".total").innerText(), /408 tools by tokens/);

  // Select one with Space, one with its check box, all with the check box of the header.
  await visit("tools?server=issues&sort=name");
  const selected = page.locator(".selected");
  await page.getByRole("checkbox", { name: "Select issues:merge" }).check();
  await page.locator("tbody tr[data-i='1'] a").focus();
  await page.keyboard.press("Space");
  await selected.getByText("2 selected").waitFor();
  await selected.getByRole("button", { name: "Disable 2" }).click();
  const statuses = async () => (await api("GET", "/tools?server=issues&sort=name")).tools.map((tool) => tool.status ?? "callable").join();
  await until("two are off", async () => (await statuses()) === "callable,disabled_by_user,callable,disabled_by_user");
  await selected.waitFor({ state: "detached" });
  await page.locator(".toast", { hasText: "Disabled 2 tools." }).getByRole("button", { name: "Undo" }).click();
  await until("they are on again", async () => (await statuses()) === "callable,callable,callable,callable");
  await page.getByRole("checkbox", { name: "Select all" }).click(); // selected when the tools are loaded
  await selected.getByText("4 selected").waitFor();
  assert.deepEqual(await axeInBoth(page), []);
  await selected.getByRole("button", { name: "Clear" }).click();
  await selected.waitFor({ state: "detached" });
});
