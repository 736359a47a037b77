// Sign in, stay signed in, sign out.
import assert from "node:assert/strict";
import { test } from "node:test";
import { scene, settled, until } from "./harness.mjs";

test("a code signs in once and leaves the address", async (t) => {
  const { page, daemon, visit } = await scene(t, { signIn: false });
  const code = await daemon.code();
  await visit(`servers#${code}`);
  assert.equal(page.url(), `${daemon.url}/ui/servers`);
  assert.equal(await page.getByRole("navigation").first().isVisible(), true);
  await page.reload(); // the session belongs to the tab
  await settled(page);
  assert.match(await page.title(), /^Servers/);
  await page.goto("about:blank");
  await visit(`servers#${code}`);
  assert.match(await page.locator("#main").innerText(), /Sign in to MCPProxy/);
  assert.match(await page.locator("#main").innerText(), /code/i);
});

test("the key signs in, and a wrong key shows the reason", async (t) => {
  const { page, daemon, visit } = await scene(t, { signIn: false });
  await visit("activity");
  assert.equal(await page.getByRole("button", { name: "Sign in" }).isDisabled(), true);
  await page.getByLabel("API key").fill("wrong");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").waitFor();
  await page.getByLabel("API key").fill(daemon.key);
  await page.keyboard.press("Enter");
  await page.getByRole("navigation").first().waitFor();
  await settled(page);
  assert.match(await page.title(), /^Activity/);
  assert.equal((await page.content()).includes(daemon.key), false);
});

test("a second tab has the session, and loses it with the first", async (t) => {
  const { page, context, visit } = await scene(t);
  const second = await context.newPage();
  await visit("tools", second);
  assert.match(await second.title(), /^Tools/);
  await page.evaluate(() => fetch("/api/v1/session?everywhere=true", { method: "DELETE", headers: { "X-MCPProxy-Session": sessionStorage.getItem("mcpproxy.session") } }));
  await second.reload();
  await second.getByText("Sign in to MCPProxy").waitFor();
});

test("works below the path of public_url", async (t) => {
  const { page, daemon, visit } = await scene(t, { signIn: false, allow: [/^left for /] });
  const url = `${daemon.url}/proxy`;
  await daemon.configure({ public_url: url, mcpServers: {} });
  await until("the path is known", async () => (await fetch(`${url}/healthz`)).ok);
  await page.goto(`${url}/ui/servers/none#${await daemon.code()}`);
  await settled(page);
  assert.equal(page.url(), `${url}/ui/servers/none`);
  await page.getByRole("link", { name: "Tools" }).first().click();
  await page.waitForFunction(() => location.pathname === "/proxy/ui/tools");
  await page.reload(); // the cookie is sent below the path
  await settled(page);
  assert.match(await page.title(), /^Tools/);
  assert.equal(await page.getByRole("navigation").first().isVisible(), true);
  await visit("tools"); // the address without the path still works
  assert.match(await page.title(), /MCPProxy/);
});
