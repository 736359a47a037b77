// The story of the clients page: who was there, and how another one is connected.
import assert from "node:assert/strict";
import { test } from "node:test";
import { scene } from "./harness.mjs";

test("the clients of today, the addresses, what to write", async (t) => {
  const { page, daemon, visit } = await scene(t, { demo: true, at: "clients", context: { viewport: { width: 1440, height: 900 }, permissions: ["clipboard-read", "clipboard-write"] } });
  await page.getByRole("heading", { level: 1, name: "No client used MCPProxy today" }).waitFor();
  const address = `${daemon.url}/mcp`;
  await page.locator(".lead").getByText(address).waitFor();
  await daemon.tools("notes:list_notes");
  const claude = await daemon.client("claude-code", "3.0.4");
  await claude.call("call_tool_read", { name: "notes:list_notes", intent: { operation_type: "read" } });
  await claude.call("call_tool_read", { name: "notes:delete_note", args: { title: "x" }, intent: { operation_type: "read" } }); // refused
  await (await daemon.client("cursor-vscode", "2.0")).call("call_tool_read", { name: "notes:list_notes", intent: { operation_type: "read" } });
  await page.getByRole("heading", { level: 1, name: "Two clients used MCPProxy today" }).waitFor();
  const row = page.locator(".seen tr", { hasText: "Claude Code" });
  assert.match(await row.innerText(), /3\.0\.4/);
  assert.match(await row.getByRole("link", { name: "1" }).getAttribute("href"), /activity\?client=claude-code&status=blocked/);
  assert.equal(await page.locator(".sessions tr").count(), 2);
  assert.match(await page.locator(".sessions a").first().getAttribute("href"), /activity\?session=/);

  await page.getByRole("button", { name: "Copy " + address, exact: true }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), address);
  await page.getByRole("button", { name: "Codex (CLI, app, IDE)" }).click();
  await page.locator(".snippet").first().getByRole("button", { name: "Copy" }).click();
  const text = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(text, new RegExp(`url = "${address.replaceAll(".", "\\.")}"`));
  assert.match(text, /call_tool_destructive\]\napproval_mode = "prompt"/);
  await visit("clients");
});
