// The clients page: which clients connected, their permissions, how to connect one, and tokens.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { axeInBoth, scene, until } from "./harness.mjs";

const wide = { viewport: { width: 1440, height: 900 }, permissions: ["clipboard-read", "clipboard-write"] };
const cursor = '{\n  // mine\n  "mcpServers": {\n    "files": { "command": "npx", "args": ["-y", "x"] },\n  }\n}\n';
const row = (page, name) => page.locator(".clients-t tbody tr", { hasText: name });

test("the clients of today, the addresses, and the entries to write", async (t) => {
  const { page, daemon, visit } = await scene(t, { demo: true, at: "clients", context: wide });
  await page.getByRole("heading", { level: 1, name: "No clients in the last 24 hours" }).waitFor();
  const address = `${daemon.url}/mcp`;
  await page.locator(".lead").getByText(address).waitFor();
  await daemon.tools("notes:list_notes");
  const claude = await daemon.client("claude-code", "3.0.4");
  await claude.call("call_tool_read", { name: "notes:list_notes", intent: { operation_type: "read" } });
  await claude.call("call_tool_read", { name: "notes:delete_note", args: { title: "x" }, intent: { operation_type: "read" } }); // refused
  await (await daemon.client("cursor-vscode", "2.0")).call("call_tool_read", { name: "notes:list_notes", intent: { operation_type: "read" } });
  await page.getByRole("heading", { level: 1, name: "2 clients in the last 24 hours" }).waitFor();
  assert.match(await row(page, "Claude Code").innerText(), /3\.0\.4[^]*not connected/);
  assert.equal(await page.locator(".sessions tr").count(), 2);
  assert.match(await page.locator(".sessions a").first().getAttribute("href"), /activity\?session=/);
  await row(page, "Claude Code").click();
  assert.match(await page.getByRole("link", { name: "1 refused" }).getAttribute("href"), /activity\?client=claude-code&status=blocked/);
  await page.keyboard.press("j");
  await page.getByRole("complementary", { name: "Connect Cursor" }).waitFor();
  await page.keyboard.press("Escape");

  await page.getByRole("button", { name: "Copy " + address, exact: true }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), address);
  await page.getByRole("button", { name: "opencode" }).click();
  await page.getByRole("complementary", { name: "Connect opencode" }).getByText("Not found on this machine").waitFor();
  await page.getByRole("button", { name: "Copy entry for opencode" }).click();
  const text = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(JSON.parse(text).mcp.mcpproxy.url, address);
  await visit("clients");
});

test("a client is connected, its permissions are written, and both are undone byte for byte", async (t) => {
  const { page, daemon, visit } = await scene(t, { demo: true, home: { ".cursor/mcp.json": cursor }, at: "clients?id=cursor", context: wide });
  const file = join(daemon.dir, ".cursor/mcp.json");
  const drawer = page.locator(".drawer");
  await drawer.getByText("mcpAllowlist").last().waitFor();
  assert.match((await drawer.locator("ins").allInnerTexts()).join("\n"), new RegExp(`"mcpproxy-read": .*${daemon.url}/mcp/all/read[^]*mcpproxy-read:`));
  assert.equal(await readFile(file, "utf8"), cursor, "what is only shown is not written");
  await drawer.getByRole("button", { name: "Write to file" }).click();
  await page.getByText("Connected Cursor.").waitFor();
  assert.match(await readFile(file, "utf8"), /\/\/ mine[^]*"mcpproxy-read"/);
  await until("the table says it", async () => /runs[^]*asks[^]*asks/.test(await row(page, "Cursor").innerText()));
  await drawer.locator(".asks").getByText(/permissions\.json, line \d/).first().waitFor();
  assert.equal(await drawer.getByRole("button", { name: "Write permissions" }).count(), 0, "there is nothing left to write");

  // Disconnect and connect again.
  await drawer.getByRole("button", { name: "Disconnect…" }).click();
  await page.locator("dialog[open] del").first().waitFor();
  await page.locator("dialog[open]").getByRole("button", { name: "Disconnect" }).click();
  await page.getByText("Disconnected Cursor.").waitFor();
  assert.equal(await readFile(file, "utf8"), cursor);
  assert.match(await drawer.locator(".found").innerText(), /files\s+npx -y x/);
  await page.keyboard.press("Control+z");
  await until("it is in the file again", async () => (await readFile(file, "utf8")).includes("mcpproxy"));
  await drawer.getByRole("button", { name: "Undo: connected" }).click();
  await page.getByText("File restored").waitFor();
  assert.equal(await readFile(file, "utf8"), cursor);
  await row(page, "Cursor").getByText("not connected").waitFor();

  // Entries for another address, and files that cannot be read.
  await writeFile(file, '{"mcpServers": {"mcpproxy": {"url": "http://127.0.0.1:1/mcp"}}}');
  await visit("clients?id=cursor");
  await row(page, "Cursor").getByText("connected to another server").waitFor();
  await drawer.locator(".remark", { hasText: "http://127.0.0.1:1/mcp" }).waitFor();
  await writeFile(file, "{ broken");
  await visit("clients?id=cursor");
  await row(page, "Cursor").getByText("cannot read its file").waitFor();
  await drawer.getByText(/mcp\.json.*line 1/).waitFor();
});

test("a client's own command is run, and a restricted client has its own token", async (t) => {
  const { page, daemon, visit } = await scene(t, { demo: true, home: { ".codex/config.toml": 'model = "x"\n', ".gemini/settings.json": "{}" }, at: "clients?id=codex", context: wide, config: { profiles: { research: { servers: ["notes"] } } } });
  const file = join(daemon.dir, ".codex/config.toml");
  const drawer = page.locator(".drawer");
  await drawer.getByText("Restrict access").click();
  await drawer.getByLabel("Profile").selectOption("research");
  await drawer.getByLabel("Token name").fill("codex-1");
  await page.keyboard.press("Tab");
  await drawer.locator("ins", { hasText: "http_headers" }).first().waitFor();
  await drawer.getByRole("button", { name: "Write to file" }).click();
  await page.getByText("Connected Codex.").waitFor();
  assert.match(await readFile(file, "utf8"), /\/mcp\/p\/research\/all\/read"[^]*Bearer mcpp_t_/);
  await page.locator(".toks").getByText("profile research").waitFor();
  assert.doesNotMatch(await page.content(), /mcpp_t_[0-9a-f]{8}/);
  await drawer.getByRole("button", { name: "Undo: connected" }).click();
  await row(page, "Codex").getByText("not connected").waitFor();

  const script = '#!/bin/sh\nprintf \'{"mcpServers": {"mcpproxy": {"httpUrl": "%s"}}}\' "$8" > "$HOME/.gemini/settings.json"\n';
  await writeFile(join(daemon.bin, "gemini"), script, { mode: 0o755 });
  await visit("clients?id=gemini");
  const command = `gemini mcp add -s user -t http mcpproxy ${daemon.url}/mcp`;
  await drawer.getByText("Command to run").waitFor();
  await drawer.getByText(command).first().waitFor();
  await drawer.getByRole("button", { name: "Write to file" }).click();
  await page.getByText("Connected Gemini CLI.").waitFor();
  assert.equal(await readFile(join(daemon.dir, ".gemini/settings.json"), "utf8"), `{"mcpServers": {"mcpproxy": {"httpUrl": "${daemon.url}/mcp"}}}`);
});

test("a connected client gets another surface, and keeps its profile", async (t) => {
  const { page, daemon, visit } = await scene(t, { demo: true, home: { ".cursor/mcp.json": "{}" }, at: "clients", context: wide, config: { profiles: { research: { servers: ["notes"] } } } });
  const file = join(daemon.dir, ".cursor/mcp.json");
  await writeFile(file, JSON.stringify({ mcpServers: { mcpproxy: { url: `${daemon.url}/mcp/p/research` } } }));
  await visit("clients?id=cursor");
  const drawer = page.locator(".drawer");
  const choice = drawer.getByLabel("The client sees");
  assert.equal(await choice.inputValue(), "search");
  await choice.selectOption("lanes");
  await drawer.locator("ins", { hasText: "/mcp/p/research/all/read" }).first().waitFor();
  assert.deepEqual(await axeInBoth(page), []);
  await drawer.getByRole("button", { name: "Write to file" }).click();
  await page.getByText("Connected Cursor.").waitFor();
  assert.deepEqual(Object.values(JSON.parse(await readFile(file, "utf8")).mcpServers).map((s) => s.url), ["read", "write", "destructive"].map((lane) => `${daemon.url}/mcp/p/research/all/${lane}`));
  await drawer.getByText("every tool by name, an entry for each lane (now)").waitFor({ state: "attached" });
  assert.equal(await choice.inputValue(), "lanes");
  assert.equal(await drawer.getByRole("button", { name: "Write to file" }).count(), 0, "there is nothing left to write");
});

test("a token is created, shown once, and revoked", async (t) => {
  const { page, daemon, api } = await scene(t, { demo: true, at: "clients", context: wide, config: { profiles: { research: { servers: ["notes"] } } } });
  await page.getByText("A token limits a client").waitFor();
  await page.keyboard.press("n");
  const dialog = page.locator("dialog[open]");
  await dialog.getByLabel("Name").fill("ci-nightly");
  await dialog.getByLabel("Profile").selectOption("research");
  await dialog.getByLabel("Servers").fill("notes, nowhere");
  await dialog.getByText("No server named nowhere.").waitFor();
  await dialog.getByLabel("Servers").fill("notes");
  await dialog.getByLabel("write").uncheck();
  await dialog.getByLabel("destructive").uncheck();
  await dialog.getByLabel("Expires after").selectOption("7 days");
  await dialog.getByRole("button", { name: "Create token" }).click();
  await dialog.getByText("It is not shown again").waitFor();
  await dialog.getByRole("button", { name: "Copy token" }).click();
  const token = await page.evaluate(() => navigator.clipboard.readText());
  assert.match(token, /^mcpp_t_/);
  await dialog.getByRole("button", { name: "Done" }).click();
  const line = page.locator(".toks tbody tr");
  assert.match(await line.innerText(), /ci-nightly\s+profile research: notes\s+read\s+\d+ \w+\s+never used\s+Revoke/);
  assert.ok(!(await page.content()).includes(token));
  const as = () => fetch(`${daemon.url}/mcp`, { method: "POST", headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json", Accept: "application/json, text/event-stream" }, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "ci", version: "1" } } }) });
  assert.equal((await as()).status, 200);

  // A duplicate name is rejected with the message of the problem, next to the field.
  await page.keyboard.press("n");
  await dialog.getByLabel("Name").fill("ci-nightly");
  await dialog.getByRole("button", { name: "Create token" }).click();
  await dialog.getByRole("alert").waitFor();
  await page.keyboard.press("Escape");

  await line.getByRole("button", { name: "Revoke ci-nightly…" }).click();
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await page.getByText("Revoked ci-nightly").waitFor();
  assert.deepEqual((await api("GET", "/tokens")).tokens, []);
  assert.equal((await as()).status, 401);
});

test("tokens are sorted, and several revoked at once", async (t) => {
  const { page, api } = await scene(t, { demo: true, at: "clients", context: wide });
  for (const [name, expires_in] of [["nightly", "7d"], ["backup", "30d"], ["ci", "1d"]]) await api("POST", "/tokens", { name, lanes: ["read"], expires_in });
  await page.reload();
  const names = () => page.locator(".toks tbody td.strong").allInnerTexts();
  const head = (name) => page.locator(".toks th", { has: page.getByRole("button", { name, exact: true }) });
  await head("Expires").getByRole("button").click();
  await until("the next to end first", async () => (await names()).join() === "ci,nightly,backup" && (await head("Expires").getAttribute("aria-sort")) === "ascending");
  await head("Name").getByRole("button").click();
  await until("by name", async () => (await names()).join() === "backup,ci,nightly");
  await page.getByRole("checkbox", { name: "Select ci" }).check();
  await page.getByRole("checkbox", { name: "Select nightly" }).check();
  assert.deepEqual(await axeInBoth(page), []);
  await page.getByRole("button", { name: "Revoke 2…" }).click();
  const dialog = page.locator("dialog[open]");
  await dialog.getByText("ci, nightly").waitFor();
  await dialog.getByRole("button", { name: "Revoke" }).click();
  await page.getByText("Revoked 2 tokens").waitFor();
  assert.deepEqual((await api("GET", "/tokens")).tokens.map((token) => token.name), ["backup"]);
});
