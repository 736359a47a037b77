// Servers: their states, the reasons for failures, and the fixes.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { axeInBoth, Daemon, phone, scene as sceneOf, until } from "./harness.mjs";

const says = (text, end) => ({ command: "sh", args: ["-c", `${text}; ${end}`] });
const crashes = says("echo 'Loading kubeconfig' >&2; echo 'Error: ENOENT: no such file, open kubeconfig' >&2; printf '\\342\\200\\256<b>turned</b>\\n' >&2", "exit 3");
const waits = { command: "npx", args: ["-y", "task-master-ai@0.43.1"], quarantined: true };

// The browser is closed before the daemon, because a page that follows a log would report an error.
async function scene(t, { at, context, ...options }) {
  const daemon = await Daemon.run(options);
  try {
    return await sceneOf(t, { daemon, ...(at ? { at } : {}), ...(context ? { context } : {}) });
  } finally {
    t.after(() => daemon.close());
  }
}

const row = (page, name) => page.locator("tbody tr[data-i]", { has: page.locator(".c-name", { hasText: new RegExp(`^${name}$`) }) });
const help = (page, name) => page.locator(`tbody tr[data-i]:has-text("${name}") + tr.detail`);
const drawer = (page) => page.locator("aside.drawer");
const server = async (daemon, name) => daemon.api("GET", `/servers/${name}`);
const heading = (page, text) => until(`the heading is ${text}`, async () => (await page.locator("h1").innerText()).match(text));

test("a server with a problem shows the reason, and the others work", async (t) => {
  const { page, daemon, visit } = await scene(t, {
    demo: true, servers: { kubernetes: crashes, slow: says("echo 'downloading' >&2", "sleep 100"), unreachable: { url: "http://127.0.0.1:9/mcp" }, "task-master": waits, puppeteer: { ...waits, quarantined: false, enabled: false } },
  });
  const config = JSON.parse(await readFile(daemon.config, "utf8"));
  config.mcpServers.lazybones = { ...config.mcpServers.notes, lazy: true };
  await daemon.configure(config);
  await daemon.state("ready", "notes", "weather", "shifty");
  await daemon.state("idle", "lazybones");
  await until("they have failed", async () => (await server(daemon, "kubernetes")).failure && (await server(daemon, "unreachable")).failure);
  await visit("servers");
  await heading(page, /^3 servers need attention, 5 running$/);

  // Each state has its word. A server that has not listed its tools does not show 0.
  for (const [name, word] of [["task-master", "needs review"], ["notes", "ready"], ["lazybones", "idle"], ["puppeteer", "disabled"], ["slow", "starting"]]) assert.match(await row(page, name).locator(".c-state").innerText(), new RegExp("^" + word));
  assert.equal(await row(page, "lazybones").locator(".c-tools").innerText(), "unknown");
  assert.equal(await row(page, "notes").locator(".c-tools").innerText(), "5");

  // The cause is MCPProxy's sentence; the end of the log is shown as text.
  await until("the cause", async () => /^Error: ENOENT: no such file, open kubeconfig\s+Exited with code 3(, \d+ times)?\..*SERVER_UNAVAILABLE/s.test(await help(page, "kubernetes").innerText()));
  const log = help(page, "kubernetes").locator("pre");
  await until("its log", async () => /Error: ENOENT.*\\u202e<b>turned<\/b>.*not connected/s.test(await log.innerText()));
  assert.equal(await log.locator("b").count(), 0);
  assert.equal(await log.locator(".decisive").innerText().then((text) => text.slice(9).trim()), "Error: ENOENT: no such file, open kubeconfig");
  assert.match(await help(page, "unreachable").innerText(), /Nothing answers at its address 127\.0\.0\.1:9/);
  assert.deepEqual(await axeInBoth(page), []);

  // Disable in the list, and undo.
  await help(page, "unreachable").getByRole("button", { name: "Disable" }).click();
  await until("it is off", async () => !(await server(daemon, "unreachable")).enabled);
  await heading(page, /^2 servers need attention/);
  await page.keyboard.press("Control+z");
  await until("it is on", async () => (await server(daemon, "unreachable")).enabled);
  await heading(page, /^3 servers need attention/);

  // A call appears at once, and the selection stays.
  const agent = await daemon.client();
  await agent.call("call_tool_read", { name: "notes:list_notes", args: {}, intent: { operation_type: "read", reason: "look" } });
  await until("the call is counted", async () => (await row(page, "notes").locator(".c-calls").innerText()).trim() === "1");

  // A server that an agent proposes appears without a reload, as a proposal only.
  await page.locator(".log").evaluate((box) => (box.scrollTop = 60));
  const at = await page.locator(".log").evaluate((box) => box.scrollTop);
  await agent.call("upstream_servers", { operation: "add", name: "proposed", command: "npx", args: ["-y", "x"] });
  await row(page, "proposed").getByRole("link", { name: "Review" }).waitFor();
  await heading(page, /^4 servers need attention/);
  assert.equal(await page.locator(".log").evaluate((box) => box.scrollTop), at);
  await visit("servers?id=proposed&part=config");
  await drawer(page).getByText("This server is only proposed").waitFor();
  assert.equal(await drawer(page).getByRole("button", { name: "Edit" }).count(), 0);
  assert.deepEqual(await axeInBoth(page), []);
});

test("a server is viewed, configured and removed by keyboard", async (t) => {
  const token = "ghp_" + "a1B2".repeat(9);
  const { page, daemon, visit } = await scene(t, { demo: true, servers: { chatty: says("i=0; while [ $i -lt 100000 ]; do echo line $i >&2; i=$((i+1)); sleep 0.2; done", `exit 0`), secret: { command: "sh", args: ["-c", "exit 1", `--token=${token}`] } } });
  await daemon.state("ready", "notes", "shifty");
  await visit("servers");
  await row(page, "notes").waitFor();

  // j and k move, Enter opens, the drawer follows, Esc returns the focus.
  await row(page, "notes").locator("a.name").focus();
  await page.keyboard.press("Enter");
  await drawer(page).getByRole("heading", { name: "notes" }).waitFor();
  await until("availability", async () => /[Rr]eady 100 %/.test(await drawer(page).innerText()));
  assert.deepEqual(await axeInBoth(page), []);
  await page.keyboard.press("j");
  await drawer(page).getByRole("heading", { name: "shifty" }).waitFor();
  await page.keyboard.press("k");
  await drawer(page).getByRole("heading", { name: "notes" }).waitFor();

  // o disables it, Undo enables it again.
  await page.keyboard.press("o");
  await until("it is off", async () => !(await server(daemon, "notes")).enabled);
  await drawer(page).getByRole("button", { name: "Enable" }).waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await daemon.state("ready", "notes");

  // Change one setting, and undo it.
  await drawer(page).getByRole("button", { name: "Configuration" }).click();
  await drawer(page).getByRole("button", { name: "Edit trust" }).click();
  await drawer(page).getByRole("button", { name: "manual" }).click();
  await drawer(page).getByRole("button", { name: "Save" }).click();
  await until("manual", async () => (await server(daemon, "notes")).trust === "manual");
  await page.locator(".toast", { hasText: "Saved Trust of notes" }).getByRole("button", { name: "Undo" }).click();
  await until("scan", async () => (await server(daemon, "notes")).trust === "scan");
  await drawer(page).getByRole("button", { name: "Edit denied tools" }).click();
  await drawer(page).locator("textarea").fill("delete_*\n");
  await page.keyboard.press("Control+Enter");
  await until("4 of 5", async () => (await row(page, "notes").locator(".c-tools").innerText()) === "4 of 5");
  // A rejected value stays in the field, with the reason.
  await drawer(page).getByRole("button", { name: "Edit call timeout" }).click();
  await drawer(page).getByRole("textbox").fill("soon");
  await page.keyboard.press("Enter");
  await drawer(page).getByRole("alert").waitFor();
  assert.deepEqual(await axeInBoth(page), []);
  await page.keyboard.press("Escape");
  await drawer(page).getByRole("button", { name: "Add to environment" }).click();
  await drawer(page).getByLabel("Name").fill("LANG");
  await drawer(page).getByLabel("Value").fill("C");
  await page.keyboard.press("Enter");
  await until("the variable", async () => (await server(daemon, "notes")).launch.env?.includes("LANG"));

  // A masked secret is never written to the file.
  await visit("servers?id=secret&part=config");
  await drawer(page).getByRole("button", { name: "Edit command" }).click();
  assert.match(await drawer(page).locator("textarea").inputValue(), /\[masked /);
  await drawer(page).locator("textarea").press("End");
  await drawer(page).locator("textarea").pressSequentially(" --more");
  await drawer(page).getByRole("button", { name: "Save" }).click();
  await drawer(page).getByRole("alert").getByText(/is a masked secret/).waitFor();
  assert.match(await readFile(daemon.config, "utf8"), new RegExp(token));

  // Follow the log, pause, and resume.
  await visit("servers?id=chatty&part=log");
  const log = drawer(page).locator("pre");
  const lines = async () => (await log.innerText()).split("\n").length;
  await log.waitFor();
  const first = await lines();
  await until("more lines", async () => (await lines()) > first + 3);
  assert.match(await log.innerText(), /^\d\d:\d\d:\d\d stderr +line \d+/m);
  assert.deepEqual(await axeInBoth(page), []);
  await drawer(page).getByRole("button", { name: "Pause" }).click();
  await until("lines are held", async () => /paused, \d+ newer/.test(await drawer(page).innerText()));
  const held = await log.innerText();
  await until("more are held", async () => /paused, ([5-9]|\d\d+) newer/.test(await drawer(page).innerText()));
  assert.equal(await log.innerText(), held);
  await drawer(page).getByRole("button", { name: "Resume" }).click();
  await until("it goes on", async () => (await log.innerText()).length > held.length + 20);

  // To remove it, the user must type its name.
  await drawer(page).getByRole("button", { name: "More for chatty" }).click();
  await page.getByRole("menuitem", { name: "Remove…" }).click();
  const remove = page.getByRole("dialog").getByRole("button", { name: "Remove" });
  assert.equal(await remove.isDisabled(), true);
  await page.getByLabel("Type the name to confirm").fill("chatty");
  await page.keyboard.press("Enter");
  await until("it is gone", async () => !(await daemon.api("GET", "/servers")).servers.some((s) => s.name === "chatty"));
  await drawer(page).waitFor({ state: "detached" });

  // Quarantine asks, and then opens the review.
  await visit("servers");
  await page.getByRole("button", { name: "More for shifty" }).click();
  await page.getByRole("menuitem", { name: "Quarantine…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Quarantine" }).click();
  await row(page, "shifty").getByRole("link", { name: "Review" }).waitFor();
  assert.equal((await server(daemon, "shifty")).quarantined, true);
});

test("servers are pasted, previewed and added", async (t) => {
  const { page, daemon, visit } = await scene(t, { at: "servers" });
  await page.getByText("No servers yet").first().waitFor();
  assert.deepEqual(await axeInBoth(page), []);
  await page.keyboard.press("n");
  const dialog = page.getByRole("dialog");
  const paste = dialog.getByLabel("Paste client JSON");
  const add = dialog.getByRole("button", { name: /^Add/ });
  assert.equal(await add.isDisabled(), true);
  const notes = { command: daemon.binary, args: ["demo-upstream", "notes"] };
  const text = JSON.stringify({ mcpServers: { notes, other: { ...notes, env: { GITHUB_TOKEN: "ghp_" + "a1B2".repeat(9) } } } }, null, 2).replace(/\}\n\}$/, "},\n}");
  await paste.fill(text);
  await dialog.getByRole("button", { name: /^Add 2 servers/ }).waitFor();
  assert.match(await dialog.innerText(), /demo-upstream notes/);
  assert.match(await dialog.innerText(), /GITHUB_TOKEN looks like a github-token/);
  assert.deepEqual(await axeInBoth(page), []);
  await dialog.getByRole("checkbox", { name: "Add other" }).click();
  await dialog.getByRole("button", { name: /^Add 1 server/ }).waitFor();
  await paste.press("Control+Enter");
  await until("its row is live", async () => /notes\s+5 tools, clean\s+ready/.test(await dialog.innerText()));
  await page.keyboard.press("Escape");
  await row(page, "notes").waitFor();

  // A duplicate name is reported, and the user can enter another one. A secret is stored in the keyring.
  await page.keyboard.press("n");
  await paste.fill(text);
  await dialog.getByText("A server named notes already exists.").waitFor();
  await dialog.getByRole("checkbox", { name: "Add notes" }).click();
  assert.equal(await dialog.getByRole("checkbox", { name: "Store GITHUB_TOKEN of other in the keyring" }).isChecked(), true);
  await dialog.getByRole("button", { name: /^Add 1 server/ }).click();
  await until("an answer", async () => /1 server added/.test(await dialog.getByRole("heading").first().innerText()));
  assert.doesNotMatch(await readFile(daemon.config, "utf8"), /ghp_/);
  assert.match(await readFile(daemon.config, "utf8"), /\$\{keyring:GITHUB_TOKEN\}/);
  await page.keyboard.press("Escape");

  // A command, a URL, and a text that is neither.
  await page.keyboard.press("n");
  await paste.fill("npx -y @modelcontextprotocol/server-filesystem '~/my code'");
  await dialog.getByText("npx -y @modelcontextprotocol/server-filesystem '~/my code'", { exact: true }).waitFor();
  await paste.fill("https://mcp.example.com/mcp");
  await dialog.getByText("URL", { exact: true }).waitFor();
  await paste.fill('{"mcpServers": {"a": ');
  await dialog.getByText(/^Line \d+:/).first().waitFor();
  assert.equal(await dialog.getByRole("button", { name: "Add", exact: false }).isDisabled(), true);
  await page.keyboard.press("Escape");
  await visit("servers");
});

test("a thousand servers can be searched by name, and collapse", async (t) => {
  const servers = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`server-${String(i).padStart(3, "0")}`, { ...waits, quarantined: false, enabled: false }]));
  const { page, visit } = await scene(t, { demo: true, servers });
  await visit("servers");
  await row(page, "notes").waitFor();
  assert.ok((await page.locator("tbody tr[data-i]").count()) < 60);
  assert.equal(await page.locator("table").getAttribute("aria-rowcount"), String(1003 + 2 + 1));
  await page.locator(".log").evaluate((box) => (box.scrollTop = box.scrollHeight));
  await row(page, "server-999").waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("r-12");
  await until("what fits", async () => (await page.locator("tbody tr[data-i] .c-name").count()) === 10);
  assert.match(page.url(), /q=r-12/);
  await page.keyboard.type("zzz");
  await page.getByText("No matching servers").waitFor();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await page.locator(".log").evaluate((box) => (box.scrollTop = 0));
  await page.getByRole("button", { name: /^Disabled/ }).click();
  await until("folded", async () => (await page.locator("tbody tr[data-i] .c-name").count()) === 3);
  assert.match(page.url(), /fold=off/);

  // A link to one of them also shows it in the list.
  await visit("servers?id=server-700");
  await until("it is in view", async () => row(page, "server-700").evaluate((tr) => {
    const [r, box] = [tr.getBoundingClientRect(), tr.closest(".log").getBoundingClientRect()];
    return r.top > box.top - 1 && r.bottom < box.bottom + 1;
  }));
});

// A server that requires a login, and its authorization server.
async function behindLogin(t) {
  const server = createServer((request, response) => {
    const base = `http://127.0.0.1:${server.address().port}`;
    const json = (status, body, headers = {}) => response.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(body));
    request.resume();
    if (request.url.startsWith("/.well-known/oauth-protected-resource")) return json(200, { resource: base + "/mcp", authorization_servers: [base] });
    if (request.url.startsWith("/.well-known/oauth-authorization-server")) return json(200, { issuer: base, authorization_endpoint: base + "/authorize", token_endpoint: base + "/token", registration_endpoint: base + "/register", code_challenge_methods_supported: ["S256"] });
    if (request.url === "/register") return json(201, { client_id: "test" });
    json(401, {}, { "WWW-Authenticate": `Bearer resource_metadata="${base}/.well-known/oauth-protected-resource/mcp"` });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  return `http://127.0.0.1:${server.address().port}/mcp`;
}

test("a login starts at the authorization server that the server names", async (t) => {
  const url = await behindLogin(t);
  const { page, daemon, visit } = await scene(t, { servers: { notion: { url } }, context: phone });
  await daemon.state("needs_login", "notion");
  await visit("servers");
  await heading(page, /^1 server needs attention, none running$/);
  assert.deepEqual(await axeInBoth(page), []);
  await page.getByRole("button", { name: "Log in" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Open login page" }).waitFor();
  assert.match(await dialog.innerText(), new RegExp(new URL(url).host));
  assert.deepEqual(await axeInBoth(page), []);
  assert.equal((await daemon.api("GET", "/servers/notion/login")).state, "waiting");
});

test("servers are sorted within their groups, and disabled and enabled together", async (t) => {
  const { page, daemon, visit } = await scene(t, { demo: true });
  await daemon.state("ready", "notes", "weather", "shifty");
  await visit("servers");
  const names = () => page.locator(".c-name a").allInnerTexts();
  const head = page.locator("thead th", { has: page.getByRole("button", { name: "Server", exact: true }) });
  await head.getByRole("button").click();
  await until("by name", async () => (await names()).join() === "notes,shifty,weather" && (await head.getAttribute("aria-sort")) === "ascending");
  await head.getByRole("button").click();
  await until("from the last", async () => (await names()).join() === "weather,shifty,notes");
  await page.getByRole("checkbox", { name: "Select notes" }).check();
  await page.getByRole("checkbox", { name: "Select weather" }).check();
  await page.getByRole("button", { name: "Disable 2" }).click();
  await until("two are off", async () => !(await server(daemon, "notes")).enabled && !(await server(daemon, "weather")).enabled && (await server(daemon, "shifty")).enabled);
  await page.locator(".toast", { hasText: "Disabled 2 servers." }).getByRole("button", { name: "Undo" }).click();
  await daemon.state("ready", "notes", "weather");
  await page.getByRole("checkbox", { name: "Select all" }).check();
  await page.locator(".selected").getByText("3 selected").waitFor();
  assert.deepEqual(await axeInBoth(page), []);
});

test("a server that cannot be downloaded shows the reason, on every page", async (t) => {
  const { page, daemon, visit } = await scene(t, { demo: true });
  await writeFile(join(daemon.bin, "npx"), "#!/bin/sh\nexec sleep 600\n", { mode: 0o755 });
  await daemon.api("POST", "/servers", { name: "files", command: "npx", args: ["-y", "@example/files"], env: { npm_config_registry: "http://127.0.0.1:9" }, quarantined: false });
  await visit("servers");
  await until("its state", async () => /^cannot download/.test(await row(page, "files").locator(".c-state").innerText()));
  assert.match(await help(page, "files").innerText(), /^127\.0\.0\.1 cannot be reached, is the network down\?\s+.*MCPProxy retries when the network is available again/s);
  assert.deepEqual(await axeInBoth(page), []);
  await visit("servers?id=files");
  await drawer(page).getByText("127.0.0.1 cannot be reached, is the network down?").waitFor();
  for (const name of ["Edit files", "Retry files", "Remove files…"]) assert.equal(await drawer(page).getByRole(name.startsWith("Edit") ? "link" : "button", { name }).count(), 1);
  await visit("overview");
  await page.locator(".todo li", { hasText: "files cannot be downloaded" }).getByText("127.0.0.1 cannot be reached").waitFor();
  await visit("overview?start=1");
  await page.locator(".launches li", { hasText: "files" }).getByText("127.0.0.1 cannot be reached, is the network down?").waitFor();
});

test("a server of a registry is added for review", async (t) => {
  const entry = (name, more = {}, official = {}) => ({ server: { name, version: "1.0.0", description: "Notes <b>in</b> folders", packages: [{ registryType: "npm", identifier: "mcp-notes", version: "1.0.0", transport: { type: "stdio" },
    environmentVariables: [{ name: "TOKEN", isRequired: true, isSecret: true }, { name: "REGION", isRequired: true }], ...more }] }, _meta: { "io.modelcontextprotocol.registry/official": { status: "active", ...official } } });
  const all = [entry("a/notes"), entry("a/notes-old", {}, { status: "deprecated", statusMessage: "Use a/notes." }), entry("a/notes-evil", { runtimeHint: "npx", runtimeArguments: [{ type: "positional", value: "-c" }] })];
  const registry = createServer((q, r) => r.end(JSON.stringify(q.url.includes("/versions/") ? all.find((e) => q.url.includes(encodeURIComponent(e.server.name) + "/")) : { servers: all })));
  await new Promise((done) => registry.listen(0, "127.0.0.1", done));
  t.after(() => registry.close());
  const { page, daemon, visit } = await scene(t, { config: { registries: { test: `http://127.0.0.1:${registry.address().port}` } } });
  await visit("servers");
  await page.keyboard.press("n");
  const dialog = page.locator("dialog.add-dialog");
  await dialog.getByRole("button", { name: "Registry" }).click();
  await dialog.getByLabel("Name of a server").fill("notes");
  await dialog.getByRole("button", { name: "Search" }).click();
  await until("the refusals", async () => /Use a\/notes\..*"-c" is not accepted/s.test(await dialog.innerText()));
  assert.equal(await dialog.getByRole("button", { name: "Choose a/notes-old" }).isDisabled(), true);
  assert.equal(await dialog.locator(".parsed b b").count(), 0);
  await dialog.getByRole("button", { name: "Choose a/notes", exact: true }).click();
  assert.match(await dialog.getByLabel("Launch").innerText(), /npx -y mcp-notes@1\.0\.0/);
  const add = dialog.getByRole("button", { name: "Add for review" });
  assert.equal(await add.isDisabled(), true);
  await dialog.getByLabel("REGION").fill("eu");
  await dialog.getByLabel("TOKEN").fill("very-secret");
  assert.deepEqual(await axeInBoth(page), []);
  await add.click();
  await until("it waits", async () => /waits for your review\. Nothing of it was started/.test(await dialog.innerText()));
  const added = await server(daemon, "notes");
  assert.equal(added.quarantined, true);
  assert.doesNotMatch(await readFile(daemon.config, "utf8"), /very-secret/);
});
