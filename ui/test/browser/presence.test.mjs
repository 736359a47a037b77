// Presence: a passkey of Chromium's virtual authenticator is created and approves. A claim that is
// not shown is not signed, and a page at the IP address moves to localhost. A passphrase is only for the terminal.
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { test } from "node:test";
import { axeInBoth, Daemon, phone, scene, settled, until } from "./harness.mjs";

const tools = ["create_issue", "close_issue", "list_issues"].map((name) => ({ name, description: `What ${name} says.`, inputSchema: { type: "object" } }));
const byAddress = /http:\/\/127\.0\.0\.1:\d+\/|status of 403/;

// A scene at localhost, with a server whose tools wait.
async function waiting(t, options) {
  const daemon = await Daemon.run({ scripts: { issues: { tools } }, servers: { issues: { trust: "manual", quarantined: false } } });
  await until("the tools wait", async () => (await daemon.api("GET", "/approvals")).tools.length === tools.length);
  daemon.url = daemon.url.replace("127.0.0.1", "localhost");
  const s = await scene(t, { daemon, allow: [byAddress], ...options }).finally(() => t.after(() => daemon.close()));
  const dialog = s.page.getByRole("dialog");
  return {
    ...s, dialog,
    standing: () => s.api("GET", "/presence"),
    approved: async (name) => (await s.api("GET", `/servers/issues/tools/${name}`)).trust.reason === undefined,
    toast: (text, p = s.page) => p.locator(".toast", { hasText: text }).last().waitFor(),
    /** Presses Approve on the page of a tool, which then asks for the passkey. */
    approve: async (name, p = s.page) => {
      await p.locator(".review h1", { hasText: name }).waitFor();
      await p.locator(".acts-bar[data-ready=true]").waitFor(); // the buttons are disabled until the definition has been visible for a moment
      await p.locator(".acts-bar").getByRole("button", { name: /^Approve/ }).click();
    },
    press: (name) => dialog.last().getByRole("button", { name }).click(),
  };
}

async function authenticator(context, page) {
  const cdp = await context.newCDPSession(page);
  await cdp.send("WebAuthn.enable");
  await cdp.send("WebAuthn.addVirtualAuthenticator", {
    options: { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
  });
}

test("a passkey is created, approves only what is shown, and moves pages to localhost", async (t) => {
  const s = await waiting(t);
  const { page, context, daemon, dialog, visit, standing, approved, approve, press, toast } = s;
  await authenticator(context, page);
  const address = daemon.url.replace("localhost", "127.0.0.1");
  const early = await context.newPage(); // at the IP address, opened before the passkey exists
  await early.goto(`${address}/ui/approvals?id=issues:list_issues#${await daemon.code()}`);
  await settled(early);

  // Presence is off: one line explains the effect.
  await page.bringToFront(); // a page without the focus cannot use passkeys
  await visit("settings");
  const part = page.getByRole("region", { name: "Presence" });
  assert.match(await part.innerText(), /Presence is off\s+Any program that runs under your account, such as an agent with a shell, can approve changes/);
  assert.equal((await standing()).on, false);

  // The page that the command line opens: the passkey is created, and signs the current state.
  await page.goto("about:blank");
  await visit(`settings?part=passkey#${await daemon.code()}`);
  await dialog.waitFor();
  await press("Create passkey");
  await page.getByText("Sign with your passkey").waitFor();
  assert.match(await dialog.last().innerText(), /Presence anchor\s*passkey\s*sha256:[0-9a-f]{64}/);
  await press("Use passkey");
  await toast("Changes that grant more access now require your passkey.");
  await part.getByText("Changes that grant more access require your passkey").waitFor();
  const set = await standing();
  assert.deepEqual([set.on, set.kind, set.void, set.anchor.origin, set.signed], [true, "passkey", undefined, daemon.url, 1]);

  // A tool: the page shows what is signed; without the passkey nothing is approved.
  await visit("approvals?id=issues:create_issue");
  await approve("create_issue");
  assert.match(await dialog.innerText(), /Approve\s*tool\s*issues\s*create_issue\s*[0-9a-f]{64}/);
  assert.deepEqual(await axeInBoth(page), []);
  await page.setViewportSize(phone.viewport);
  assert.ok(await page.evaluate(() => document.querySelector("dialog[open]").scrollWidth <= innerWidth), "the dialog is wider than a phone");
  await page.setViewportSize({ width: 1440, height: 900 });
  await page.keyboard.press("Escape");
  await toast("Canceled. Nothing was changed.");
  assert.equal(await approved("create_issue"), false);
  await approve("create_issue");
  await press("Use passkey");
  await toast("Approved issues:create_issue");
  assert.equal(await approved("create_issue"), true);

  // If the shown claim differs from the one to sign, the page does not sign. If the request differs
  // from the signed claim, MCPProxy rejects it.
  await visit("approvals?id=issues:close_issue");
  await page.evaluate(() => {
    const own = window.fetch;
    window.fetch = async (...request) => {
      const answer = await own(...request);
      if (answer.status !== 403) return answer;
      window.fetch = own;
      return new Response((await answer.text()).replace('\\"close_issue\\"', '\\"list_issues\\"'), { status: 403, headers: answer.headers });
    };
  });
  await approve("close_issue");
  assert.match(await dialog.innerText(), /list_issues/);
  await press("Use passkey");
  await dialog.getByRole("alert").filter({ hasText: "does not match the changes shown" }).waitFor();
  await press("Cancel");
  await page.evaluate(() => {
    const own = window.fetch;
    window.fetch = (at, request) => {
      const [statement, assertion] = (request.headers["MCPProxy-Presence"] ?? "").split(".");
      if (!assertion) return own(at, request);
      window.fetch = own;
      const text = atob(statement.replaceAll("-", "+").replaceAll("_", "/")).replace(/"nonce":"../, '"nonce":"zz');
      return own(at, { ...request, headers: { ...request.headers, "MCPProxy-Presence": `${btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}.${assertion}` } });
    };
  });
  await approve("close_issue");
  await press("Use passkey");
  await toast("the passkey has signed another statement");
  assert.equal(await approved("close_issue"), false);

  // A page that was open at the IP address cannot ask for the passkey, and shows where it can be used.
  await approve("list_issues", early);
  await early.getByText("The passkey belongs to another address").waitFor();
  assert.equal(await early.getByRole("link", { name: "Open that address" }).getAttribute("href"), `${daemon.url}/ui/approvals?id=issues:list_issues`);
  // A page that is opened from there is at localhost, and signed in.
  await early.goto("about:blank");
  await early.goto(`${address}/ui/approvals?id=issues:close_issue#${await daemon.code()}`);
  await settled(early);
  assert.equal(early.url(), `${daemon.url}/ui/approvals?id=issues:close_issue`);
  await early.locator(".review h1", { hasText: "close_issue" }).waitFor();

  // One signature covers all pasted servers.
  await page.bringToFront();
  await visit("servers");
  await page.keyboard.press("n");
  const add = async () => {
    await dialog.getByLabel("Paste client JSON").fill(JSON.stringify({ mcpServers: Object.fromEntries(["first", "second", "third"].map((name) => [name, { command: "true", args: [name] }])) }));
    await press("Add 3 servers");
    await page.getByText("Sign with your passkey").waitFor();
    assert.match(await dialog.last().innerText(), /mcpServers\.first[\s\S]*mcpServers\.second[\s\S]*mcpServers\.third/);
  };
  await add();
  await page.keyboard.press("Escape");
  await dialog.getByRole("heading", { name: "0 of 3 servers added" }).waitFor();
  await dialog.getByText("Canceled. Nothing was changed.").first().waitFor();
  assert.equal((await s.api("GET", "/servers")).servers.length, 1);
  await press("Add more");
  await add();
  await press("Use passkey");
  await dialog.getByRole("heading", { name: "3 servers added" }).waitFor();
  assert.equal((await s.api("GET", "/servers")).servers.length, 4);
  await press("Done");

  // Only the passkey can turn it off.
  await page.bringToFront();
  await visit("settings?part=presence");
  await part.getByRole("button", { name: "Turn off…" }).click();
  await press("Turn off");
  await press("Use passkey");
  await toast("Presence is off.");
  assert.equal((await standing()).on, false);
});

test("under a passphrase the page shows the command for the terminal", async (t) => {
  const { page, api, dialog, visit, approve, approved, press, daemon } = await waiting(t);
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const box = Buffer.alloc(64).toString("base64");
  const anchor = {
    kind: "passphrase", since: new Date().toISOString(), before: (await api("GET", "/presence")).head, key: publicKey.export({ format: "jwk" }).x.replaceAll("-", "+").replaceAll("_", "/") + "=",
    sealed: { salt: Buffer.alloc(16).toString("base64"), time: 1, memory_kib: 8, lanes: 1, nonce: Buffer.alloc(12).toString("base64"), box },
  };
  const { statement } = await api("PUT", "/presence", { anchor }).then(() => assert.fail("no user signed"), (error) => JSON.parse(error.problem).details);
  const text = JSON.stringify(statement);
  const digest = createHash("sha256").update("mcpproxy presence statement v1\n" + text).digest();
  const proof = `${Buffer.from(text).toString("base64url")}.${sign(null, digest, privateKey).toString("base64url")}`;
  assert.equal((await api("PUT", "/presence", { anchor }, { "MCPProxy-Presence": proof })).kind, "passphrase");

  await visit("approvals?id=issues:create_issue");
  await approve("create_issue");
  await page.getByText("Sign with your passphrase").waitFor();
  assert.match(await dialog.innerText(), /Approve\s*tool\s*issues\s*create_issue/);
  assert.equal(await dialog.getByRole("group", { name: "Command" }).innerText(), "mcpproxy tools approve issues:create_issue");
  await dialog.getByRole("button", { name: "Copy command" }).waitFor();
  assert.deepEqual(await axeInBoth(page), []);
  await press("Close");
  assert.equal(await approved("create_issue"), false);

  await visit("settings?part=presence");
  assert.match(await page.getByRole("region", { name: "Presence" }).innerText(), /Changes that grant more access require your passphrase\s+Since .* You enter it in a terminal only/);
  // A passkey after a passphrase: the page creates it, the terminal signs it.
  await authenticator(page.context(), page);
  await page.getByRole("button", { name: "Set up passkey…" }).click();
  await press("Create passkey");
  await page.getByText("Sign the passkey with your passphrase").waitFor();
  const [, made] = /^mcpproxy presence set passkey --anchor ([\w-]+)$/.exec(await dialog.last().getByRole("group", { name: "Command" }).innerText());
  const next = JSON.parse(Buffer.from(made, "base64url").toString());
  const print = await dialog.last().locator("code").first().innerText();
  const asked = await api("PUT", "/presence", { anchor: next }).then(() => assert.fail("no user signed"), (error) => JSON.parse(error.problem).details);
  assert.deepEqual(asked.claims, [`presence anchor "passkey" "${print}"`]);
  assert.equal(next.origin, daemon.url);
  assert.deepEqual(await axeInBoth(page), []);
});
