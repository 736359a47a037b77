// Pending calls: a client makes a call, a user answers in the browser, and the
// client gets the answer.
import assert from "node:assert/strict";
import { test } from "node:test";
import { axeInBoth, phone, scene, until } from "./harness.mjs";

const asks = { destructive: "ask", write: "ask", wait: "2m" };
const token = "ghp_0123456789abcdefghijklmnopqrstuvwxyz";
const text = (result) => result.content.map((c) => c.text).join("\n");

// A scene with a client, and helpers for the page.
async function asked(t, options) {
  const s = await scene(t, { demo: true, config: { ask: asks }, ...options });
  const { page, api, daemon } = s;
  await daemon.tools("notes:write_note", "notes:delete_note");
  const agent = await daemon.client("Cursor", "2.3.1");
  const waiting = async () => (await api("GET", "/pending")).pending;
  return {
    ...s, waiting,
    write: (args, reason) => agent.call("call_tool_write", { name: "notes:write_note", args, ...(reason ? { intent: { operation_type: "write", reason } } : {}) }),
    remove: (title) => agent.call("call_tool_destructive", { name: "notes:delete_note", args: { title } }),
    /** Waits until n calls are pending, and returns them. */
    held: (n) => until(`${n} calls wait`, async () => { const all = await waiting(); return all.length === n && all; }),
    detail: (tool) => page.locator(".review h1", { hasText: tool }).waitFor(),
    button: (name) => page.locator(".acts-bar").getByRole("button", { name }),
    toast: (words) => page.locator(".toast", { hasText: words }).last().waitFor(),
    // The buttons are disabled until the call has been visible for a moment.
    settle: () => page.locator(".acts-bar[data-ready=true]").waitFor(),
  };
}

test("a held call is shown, approved once and sent; another is denied, and its client gets the reason", async (t) => {
  const { page, api, visit, write, remove, held, detail, button, toast, settle } = await asked(t);
  await visit("overview");
  const first = write({ title: "trip", text: `Lisbon ${token}` }, "the user asked for a reminder");
  // It appears without a reload: as the first line, and in the count next to the page's name.
  const line = page.locator(".todo li").first();
  await line.locator(".strong", { hasText: "notes:write_note needs approval" }).waitFor();
  assert.match(await line.innerText(), /Cursor called it\. Lane: write, because /);
  assert.match(await line.locator(".when").innerText(), /^(1 min( \d+ s)?|\d+ s|2 min) left$/);
  await page.getByRole("link", { name: "Approvals, 1 pending" }).waitFor();
  assert.deepEqual(await axeInBoth(page), []);
  await line.getByRole("link", { name: "Review" }).click();
  await detail("write_note");

  // The arguments, the reason, and the claims of the call.
  assert.equal(await page.locator("h1").first().innerText(), "1 item needs review");
  assert.equal(await page.locator(".inbox h2").first().innerText(), "Pending calls");
  assert.match(await page.locator(".inbox li a").first().innerText(), /notes:write_note\s+.* left\s+write, Cursor/);
  assert.match(await page.locator(".verdict").innerText(), /Lane: write\. Reason: .+/);
  const args = page.locator(".review .json");
  assert.match(await args.innerText(), /"title": "trip"/);
  assert.equal(await args.locator(".masked").count(), 1);
  assert.ok(!(await page.content()).includes(token), "a secret is on the page");
  assert.match(await page.locator(".review").innerText(), /Reason given by the agent\s+“the user asked for a reminder”/);
  assert.match(await page.locator(".review").innerText(), /5 more calls to notes:write_note with any arguments, read and write lanes, from any client, within 15 minutes\./);
  assert.deepEqual(await page.locator(".acts-bar button").allInnerTexts(), ["Approve once\na", "Deny…\nx", "Grant lease…\nw"]);
  assert.match(await button(/Approve once/).getAttribute("class"), /main-act/);
  assert.deepEqual(await axeInBoth(page), []);
  const [one] = await held(1);
  await settle();
  await page.keyboard.press("a");
  await toast("Approved notes:write_note once.");
  assert.ok(!(await first).isError, "the call went through");
  await page.getByText("Nothing to review").first().waitFor();
  await page.getByRole("link", { name: "Approvals", exact: true }).waitFor();
  const answered = await api("GET", `/pending/${one.id}`);
  assert.deepEqual([answered.state, answered.answered_by, answered.answered_via], ["used", "admin", "ui"]);

  // Another call arrives while the page is open.
  const second = remove("trip");
  await detail("delete_note");
  assert.match(await page.locator(".verdict").innerText(), /Lane: destructive\. Reason: .+/);
  await settle();
  await page.keyboard.press("x");
  const dialog = page.locator("dialog");
  await dialog.getByLabel("Reason").fill("Keep it until Monday.");
  assert.deepEqual(await axeInBoth(page), []);
  await dialog.getByRole("button", { name: "Deny" }).click();
  await toast("Denied notes:delete_note.");
  const refused = await second;
  assert.ok(refused.isError);
  assert.match(text(refused), /The user has denied the call to 'notes:delete_note'.*The reason: Keep it until Monday\./);

  // The log contains all of these.
  await visit(`activity?id=${one.activity_id}`);
  await page.locator(".drawer header", { hasText: "Held" }).waitFor();
  await page.locator(".drawer .checks", { hasText: "approval" }).waitFor();
  assert.match(await page.locator(".drawer .body").innerText(), /Needs approval\./);
  const { activities } = await api("GET", "/activity?type=tool_call&status=success&tool=write_note");
  await visit(`activity?id=${activities[0].id}`);
  await page.getByText(/^Approved by a user in the web UI after \d+ s\.$/).waitFor();
  assert.deepEqual(await axeInBoth(page), []);
  await page.getByRole("link", { name: one.activity_id }).click();
  await page.locator(".drawer header", { hasText: "Held" }).waitFor();
  await api("POST", `/activity/${activities[0].id}/redact`, { fields: ["arguments"] });
  await visit(`activity?id=${activities[0].id}`);
  await page.locator(".drawer .defs", { hasText: /Arguments\s*erased/ }).waitFor();
  await visit("activity?status=held");
  await until("the calls that were held", async () => (await page.locator(".rec tbody tr .c-status", { hasText: "held" }).count()) === 2);
  await visit("activity?type=approval");
  await page.locator(".rec tbody tr", { hasText: "call denied" }).waitFor();
});

test("a lease is granted for a pending call, covers its scope, is listed, and is revoked", async (t) => {
  const { page, daemon, api, visit, write, held, waiting, detail, button, toast, settle } = await asked(t);
  await api("POST", "/tokens", { name: "ci", lanes: ["read", "write"] });
  await visit("approvals");
  assert.equal(await page.locator("h1").innerText(), "Nothing to review");
  const first = write({ title: "a", text: "one" });
  await detail("write_note");
  await settle();
  await page.keyboard.press("w");
  const dialog = page.locator("dialog");
  await dialog.getByLabel("Calls").fill("0");
  const give = dialog.getByRole("button", { name: "Grant lease" });
  assert.ok(await give.isDisabled(), "a lease for no call");
  await dialog.getByLabel("Calls").fill("2");
  await dialog.getByLabel("Tools").selectOption({ label: "all tools on notes" });
  assert.deepEqual(await dialog.getByLabel("Lane").locator("option").allInnerTexts(), ["write", "destructive"]);
  assert.deepEqual(await dialog.getByLabel("Token").locator("option").allInnerTexts(), ["any client", "ci"]);
  await dialog.getByText("Approves this call, and 2 more calls to any tool on notes with any arguments, read and write lanes, from any client, within 15 minutes.").waitFor();
  assert.deepEqual(await axeInBoth(page), []);
  await give.click();
  await toast("Approved notes:write_note, and 2 more calls");
  assert.ok(!(await first).isError);
  assert.ok(!(await write({ title: "b", text: "two" })).isError, "the lease covers it");
  assert.deepEqual(await waiting(), []);

  await page.getByText("1 active lease").waitFor();
  await visit("overview");
  await page.locator(".lead", { hasText: "1 active lease." }).waitFor();
  await visit("clients");
  const row = page.locator("tr", { hasText: "all tools on notes" });
  await row.getByText("1 of 2 left").waitFor();
  assert.match(await row.innerText(), /in 1\d min\s+any client\s+write\s+by a user, now/);
  assert.deepEqual(await axeInBoth(page), []);
  await row.getByRole("button", { name: "Revoke the lease for all tools on notes" }).click();
  await toast("Revoked the lease for all tools on notes");
  await row.waitFor({ state: "detached" });
  assert.deepEqual((await api("GET", "/leases")).leases, []);

  // From now on, a user is asked again. The first answer counts, from any place.
  const last = write({ title: "c", text: "three" });
  const [c] = await held(1);
  await visit(`approvals?kind=call&id=${c.id}`);
  await detail("write_note");
  await button(/Approve once/).waitFor();
  await settle();
  let release;
  const answered = new Promise((r) => (release = r));
  await page.route("**/approve", async (route) => (await answered, route.continue()));
  await page.keyboard.press("a");
  await api("POST", `/pending/${c.id}/deny`, { reason: "not now" });
  release();
  await toast("was denied by");
  await page.getByText("Denied by a user over REST.").waitFor();
  assert.match(await page.locator(".verdict").innerText(), /Reason sent to the agent: not now/);
  assert.equal(await page.locator(".acts-bar").count(), 0, "there is nothing to answer any more");
  assert.match(text(await last), /not now/);

  // A call with a token: the page offers a lease for that token.
  const { token: secret } = await api("POST", "/tokens", { name: "nightly" });
  const call = fetch(`${daemon.url}/api/v1/tools/call`, {
    method: "POST", headers: { Authorization: `Bearer ${secret}`, "Content-Type": "application/json" },
    body: JSON.stringify({ tool_variant: "call_tool_write", name: "notes:write_note", args: { title: "d", text: "four" }, intent: { operation_type: "write" } }),
  });
  const [d] = await held(1);
  await visit(`approvals?kind=call&id=${d.id}`);
  await page.getByText(/from the token nightly, within 15 minutes\./).waitFor();
  await settle();
  await page.keyboard.press("a");
  assert.equal((await call).status, 200);
});

test("a late answer applies when the call is repeated", async (t) => {
  const { page, visit, write, detail, toast, settle } = await asked(t, { config: { ask: { ...asks, wait: "2s" } } });
  await visit("approvals");
  const args = { title: "trip", text: "Lisbon" };
  const first = write(args);
  await detail("write_note");
  await page.locator(".inbox .age", { hasText: /^\d s left$/ }).waitFor();
  assert.match(text(await first), /waits for the user's approval, and was not made\. No one has answered yet\./);
  await page.locator(".inbox .age", { hasText: /^valid 14 min$/ }).waitFor();
  await page.locator(".meta", { hasText: "The client stopped waiting. If it repeats the call within 14 min, your answer applies." }).waitFor();
  await settle();
  await page.keyboard.press("a");
  await toast("Approved notes:write_note once.");
  assert.ok(!(await write(args)).isError, "the same call takes the answer");
  const again = write(args);
  await detail("write_note"); // an answer applies to one call
  await page.locator(".inbox .age", { hasText: /^\d s left$/ }).waitFor();
  await again;
});

test("on a phone of 360 pixels, a call and its buttons fit", async (t) => {
  const { page, visit, remove, detail, toast, settle, button } = await asked(t, { context: { ...phone, viewport: { width: 360, height: 740 } } });
  const fits = () => page.evaluate(() => document.documentElement.scrollWidth <= innerWidth && [...document.querySelectorAll("dialog, .review, .pane-list")].every((e) => e.scrollWidth <= e.clientWidth));
  await visit("approvals");
  const call = remove("a name that is longer than a line of this phone ".repeat(4));
  await page.locator(".inbox li a", { hasText: "delete_note" }).click();
  await detail("delete_note");
  assert.ok(await fits());
  assert.deepEqual(await axeInBoth(page), []);
  await settle();
  for (const name of [/Grant lease/, /Deny/]) {
    await button(name).click();
    await page.locator("dialog[open]").waitFor();
    assert.ok(await fits(), String(name));
    assert.deepEqual(await axeInBoth(page), []);
    if (String(name) !== "/Deny/") await page.keyboard.press("Escape");
  }
  await page.locator("dialog").getByRole("button", { name: "Deny" }).click();
  await toast("Denied notes:delete_note.");
  assert.match(text(await call), /The user has denied the call/);
});
