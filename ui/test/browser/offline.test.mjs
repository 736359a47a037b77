// The daemon stops and starts again. The content stays visible, with its time. Decisions are disabled.
// The page retries automatically and with a button. Sessions survive the restart, so the page
// returns to the same view.
import assert from "node:assert/strict";
import { test } from "node:test";
import { scene, settled, until } from "./harness.mjs";
import { pages } from "./pages.mjs";

// No process listens, or a stopping or starting daemon reports this.
const gone = [/net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|INCOMPLETE_CHUNKED_ENCODING|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED)/, /^answer 503: /, /with a status of 503 /];

for (const how of ["stop", "kill"]) {
  test(`${how}: a banner with the time and a button; back in the same view`, async (t) => {
    const { page, daemon, visit, context } = await scene(t, { demo: true, allow: gone });
    await daemon.tools("notes:list_notes");
    await visit("servers?since=7d");
    const shown = await page.locator("#main h1").innerText();
    await page.getByText("Live", { exact: true }).waitFor();
    await daemon[how]();
    const banner = page.locator(".banners [role=status]");
    await banner.waitFor();
    assert.match(await banner.innerText(), /^Could not reach MCPProxy\. Showing data from \d\d:\d\d(:\d\d)?\. Retrying (in \d+ s|now)\./);
    assert.equal(await page.locator("#main h1").innerText(), shown, "what was known stays");
    await page.getByText("Offline", { exact: true }).waitFor();

    // The button retries immediately.
    const tried = page.waitForRequest((r) => r.url().includes("/api/v1/events"));
    await banner.getByRole("button", { name: "Retry now" }).click();
    await tried;
    assert.equal(await banner.isVisible(), true);
    await page.keyboard.press("g");
    await page.keyboard.press("o"); // loaded content stays available
    await page.waitForFunction(() => location.pathname === "/ui/overview");

    await daemon.start();
    await page.getByRole("button", { name: "Retry now" }).click({ timeout: 2000 }).catch(() => {}); // or it reconnected automatically
    await page.getByText("Live", { exact: true }).waitFor();
    await settled(page);
    assert.equal(new URL(page.url()).pathname, "/ui/overview", "the view is kept");
    assert.equal(await page.locator(".banners [role=status]").count(), 0);
    assert.equal((await context.pages()).length, 1);
  });
}

test("no decision is possible while the daemon is down", async (t) => {
  const { daemon } = await scene(t, { demo: true, allow: gone });
  await daemon.tools("shifty:add_numbers");
  const agent = await daemon.client();
  await agent.call("call_tool_read", { name: "shifty:add_numbers", args: { a: 1, b: 2 } });
  await until("shifty's tool waits", async () => (await daemon.api("GET", "/approvals")).total_tools > 0);
  const views = [...pages.map((p) => p.name), "approvals?id=shifty:add_numbers", "servers?id=shifty"];
  const tabs = [];
  for (const view of views) {
    tabs.push((await scene(t, { daemon, allow: gone, at: view })).page);
  }
  await daemon.kill();
  const word = /^(Approve|Block|Keep|Start for|Restart|Enable|Disable|Log in|Call as)(?!.*…$)/; // with dots, the button opens a question first
  let before = 0;
  for (const [i, tab] of tabs.entries()) {
    await tab.locator(".banners [role=status]").waitFor();
    const deciding = await tab.locator("#main button:visible").evaluateAll((all, w) => all.filter((b) => new RegExp(w).test((b.innerText || b.ariaLabel || "").trim())).map((b) => [b.innerText.trim(), b.disabled || b.getAttribute("aria-disabled") === "true"]), word.source);
    before += deciding.length;
    for (const [name, disabled] of deciding) assert.equal(disabled, true, `${views[i]}: ${name} can be pressed`);
  }
  assert.ok(before > 3, `only ${before} buttons decide`);
});

test("a link that is opened while the daemon is down works when it is back", async (t) => {
  const { page, daemon, visit } = await scene(t, { allow: [...gone, /chrome-error:/] });
  await visit("tools");
  await daemon.kill();
  await page.reload({ timeout: 5000 }).catch(() => {}); // the browser shows its error page now
  await daemon.start();
  // The browser's error page may still be loading, and would cancel an earlier navigation.
  await until("the link opens", () => page.goto(`${daemon.url}/ui/tools`));
  await settled(page);
  assert.equal(new URL(page.url()).pathname, "/ui/tools");
});
