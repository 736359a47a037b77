// Settings: a change is shown before it is saved, a file with a mistake is not saved, and no change of another program is lost.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { test } from "node:test";
import { axeInBoth, Daemon, phone, scene, until } from "./harness.mjs";

const token = "sk-test-0123456789abcdefghijABCDEFGHIJ0123456789";
const text = `{
  // Work laptop
  "call_timeout": "2m",
  "mcpServers": {
    "mongodb": {
      "command": "npx",
      "args": ["-y", "mongodb-mcp-server"],
      "env": {"MONGO_TOKEN": "${token}"},
      "enabled": false,
      "disabled_tools": ["drop-*"], // never from this machine
    },
  },
}
`;

// The page with a file that a user wrote. The browser closes before the daemon stops.
async function settings(t, options = {}) {
  const daemon = await Daemon.run();
  const write = async (now) => {
    await writeFile(daemon.config, now);
    await until("the text is looked at", async () => {
      const c = await daemon.api("GET", "/config");
      return c.etag === c.in_force_etag || c.error;
    });
  };
  const s = await write(text).then(() => scene(t, { daemon, context: { reducedMotion: "reduce" }, at: "settings", ...options })).finally(() => t.after(() => daemon.close()));
  const { page } = s;
  return {
    ...s, write,
    file: () => readFile(daemon.config, "utf8"),
    field: (label) => page.getByRole("textbox", { name: label, exact: true }),
    tab: (name) => page.getByRole("group", { name: "File view" }).getByRole("button", { name }).click(),
    heading: (words) => page.getByRole("heading", { level: 1, name: words }).waitFor(),
    changed: async (kind) => (await page.locator(`pre.diff ${kind}`).allInnerTexts()).map((l) => l.replace(/^\s*\d+\s*[+−]\s*/, "").trim()),
    save: page.getByRole("button", { name: /^Save / }),
    editor: page.getByRole("textbox", { name: "Configuration file" }),
  };
}

test("a change in the form is shown as a difference, saved with Ctrl S, undone", async (t) => {
  const { page, daemon, field, file, changed, save, heading } = await settings(t);
  await heading(/^Active since \d\d:\d\d$/);
  await field("Call timeout").fill("5m");
  await field("Search results").fill("15");
  await page.getByText("2 unsaved changes.").waitFor();
  await page.locator("pre.diff ins", { hasText: "tools_limit" }).waitFor();
  assert.deepEqual(await changed("del"), ['"call_timeout": "2m",']);
  assert.deepEqual(await changed("ins"), ['"call_timeout": "5m",', '"tools_limit": 15,']);
  await page.getByText("Applies immediately").waitFor();
  assert.equal(await file(), text, "nothing is saved yet");
  assert.deepEqual(await axeInBoth(page), []);

  await page.keyboard.press("Control+s"); // while a field has the focus
  await page.locator(".toast", { hasText: "Saved and applied." }).waitFor();
  const want = text.replace('"2m"', '"5m"').replace(/\n}\n$/, '\n  "tools_limit": 15,\n}\n');
  assert.equal(await file(), want, "comments and the secret stay");
  const { settings: all } = await daemon.api("GET", "/config");
  assert.equal(all.find((s) => s.key === "tools_limit").value, 15);
  assert.equal(await save.count(), 0);

  await page.locator(".toast").getByRole("button", { name: "Undo" }).click();
  await until("it is as before", async () => (await file()) === text);
  await until("the form says so", async () => (await field("Search results").inputValue()) === "10");
});

test("a rejected value is marked at its field, and settings that need a restart are listed", async (t) => {
  const { page, field, save, file, changed } = await settings(t);
  await field("Search results").fill("many");
  await page.locator('[data-key="tools_limit"] [role=alert]').waitFor();
  assert.equal(await field("Search results").getAttribute("aria-invalid"), "true");
  assert.ok(await save.isDisabled());
  await page.keyboard.press("Control+s");
  await page.getByText("Cannot save: 1 error").waitFor();
  assert.equal(await file(), text);
  assert.deepEqual(await axeInBoth(page), []);
  await field("Search results").fill("10");
  await until("nothing is left to save", async () => (await save.count()) === 0);

  await page.locator("summary", { hasText: "All settings" }).click();
  await page.getByLabel("log.format", { exact: true }).selectOption("json");
  await page.getByText("Restart needed for log.format", { exact: true }).waitFor();
  assert.deepEqual(await changed("ins"), ['"log": {"format": "json"},']);
  assert.equal(await page.locator('[data-key="api_key"]').getByRole("textbox").count(), 0, "what is locked has no field");
  assert.deepEqual(await axeInBoth(page), []);
  await page.getByRole("button", { name: "Discard" }).click();
  await until("it is discarded", async () => (await save.count()) === 0);
});

test("the text is edited: mistakes are marked while typing, secrets stay, history restores a text", async (t) => {
  const { page, tab, editor, save, file, changed } = await settings(t);
  await tab("File");
  await editor.waitFor();
  const shown = await page.locator(".editor").evaluate((host) => host.shadowRoot.querySelector(".cm-content").innerText);
  assert.match(shown, /\*\*\*masked:\d+\*\*\*/);
  assert.ok(!shown.includes(token));
  assert.equal(await page.locator(".editor .cm-comment").first().innerText(), "// Work laptop", "its styles and marks are there");
  assert.notEqual(await page.locator(".editor .cm-sign").first().evaluate((e) => getComputedStyle(e).color), await page.locator(".editor .cm-key").first().evaluate((e) => getComputedStyle(e).color));
  await page.getByText("kept when you save").waitFor();

  // Shortcut keys are text here: j, ? and x have no other effect.
  await editor.locator(".cm-line").nth(1).click();
  await page.keyboard.press("End");
  await page.keyboard.press("Enter");
  await page.keyboard.type('"tols_limit": 15, // j?x');
  await page.locator(".editor .cm-bad").waitFor();
  assert.match(await page.locator(".mistakes").last().innerText(), /Line 3, tols_limit[^]*tools_limit/);
  assert.ok(await save.isDisabled());
  assert.equal(await page.locator("dialog[open]").count(), 0);
  assert.deepEqual(await axeInBoth(page), []);
  await page.getByRole("button", { name: "Line 3, tols_limit" }).click();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.type("o");
  await page.getByRole("button", { name: "Save 1 change" }).waitFor();
  await until("the form shows the values of the text", async () => (await page.getByRole("textbox", { name: "Search results", exact: true }).inputValue()) === "15");
  await page.keyboard.press("Control+s");
  await page.locator(".toast", { hasText: "Saved and applied." }).waitFor();
  assert.equal(await file(), text.replace("laptop\n", 'laptop\n  "tools_limit": 15, // j?x\n'));

  await tab("History");
  const versions = page.locator(".versions a");
  await until("the new version is there", async () => /tools_limit[^]*active/.test(await versions.first().innerText()));
  assert.deepEqual(await axeInBoth(page), []);
  await versions.nth(1).click();
  await page.locator("pre.diff ins", { hasText: "tools_limit" }).waitFor();
  await page.getByRole("button", { name: "Restore version" }).click();
  await page.locator("pre.diff del", { hasText: "tools_limit" }).waitFor();
  assert.deepEqual(await changed("ins"), []);
  await page.getByRole("button", { name: "Save 1 change" }).click();
  await until("it is put back", async () => (await file()) === text);
});

test("for a file that changed in the meantime, the page shows both texts and a choice", async (t) => {
  const { page, write, field, file, tab, editor } = await settings(t);
  await field("Search results").fill("15");
  await page.getByRole("button", { name: "Save 1 change" }).waitFor();
  const theirs = text.replace("Work laptop", "Home laptop").replace('"2m"', '"3m"');
  await write(theirs);
  await page.getByRole("heading", { name: "The file changed on disk" }).waitFor();
  const their = page.getByRole("group", { name: "Changes in the file" });
  const mine = page.getByRole("group", { name: "Your changes" });
  await their.locator("ins", { hasText: "3m" }).waitFor();
  await mine.locator("ins", { hasText: "15" }).waitFor();
  assert.deepEqual(await axeInBoth(page), []);
  await page.keyboard.press("Control+s"); // has no effect before a choice
  assert.equal(await file(), theirs);
  await page.getByRole("button", { name: "Merge my changes" }).click();
  await page.getByRole("button", { name: "Save 1 change" }).click();
  const both = theirs.replace(/\n}\n$/, '\n  "tools_limit": 15,\n}\n');
  await until("both are there", async () => (await file()) === both);

  // The same line in the text: the changes cannot be merged.
  await tab("File");
  await editor.locator(".cm-line").nth(1).click();
  await page.keyboard.press("End");
  await page.keyboard.type(", mine");
  await page.getByRole("button", { name: "Save file" }).waitFor();
  await write(both.replace("Home laptop", "Home laptop, theirs"));
  await page.getByText("Both versions changed the same lines, so they cannot be merged.").waitFor();
  assert.ok(await page.getByRole("button", { name: "Merge my changes" }).isDisabled());
  await page.getByRole("button", { name: "Discard my changes" }).click();
  await page.locator(".editor .cm-line", { hasText: "theirs" }).waitFor();
});

test("a rejected file shows its mistake and the active configuration, and is fixed", async (t) => {
  const { page, write, heading, file, save } = await settings(t);
  await write(text.replace('"2m"', '"soon"'));
  await heading("The saved file has an error");
  await page.getByText(/^The configuration from \d\d:\d\d stays active\.$/).waitFor();
  assert.match(await page.locator(".mistakes.flat").innerText(), /Line 3, call_timeout/);
  assert.ok(await page.getByRole("textbox", { name: "Call timeout", exact: true }).isDisabled(), "keys are set in a right text only");
  assert.deepEqual(await axeInBoth(page), []);
  await page.getByRole("group", { name: "File view" }).getByRole("button", { name: "Changes" }).click();
  await page.getByRole("button", { name: "Restore active version" }).click();
  await page.locator("pre.diff ins", { hasText: '"2m"' }).waitFor();
  await save.click();
  await until("it is right again", async () => (await file()) === text);
  await heading(/^Active since/);
});

test("diagnostics by address, this browser, signing out everywhere, on a phone", async (t) => {
  const { page, visit, field, context, daemon, signIn } = await settings(t, { context: { ...phone, reducedMotion: "reduce" } });
  await visit("settings?part=diagnostics");
  await page.locator(".checks-list", { hasText: "Activity log" }).waitFor();
  await until("the part has the focus", () => page.evaluate(() => /^Diagnostics/.test(document.activeElement?.textContent ?? "")));
  assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true, "nothing is wider than the phone");
  await page.getByRole("group", { name: "Theme" }).getByRole("button", { name: "Dark" }).click();
  assert.equal(await page.locator("html").getAttribute("data-theme"), "dark");
  await page.getByRole("group", { name: "Theme" }).getByRole("button", { name: "System" }).click();
  await field("Search results").fill("12");
  assert.ok(await page.evaluate(() => document.querySelector(".settings footer").getBoundingClientRect().bottom <= innerHeight), "saving is in reach of the form");
  await page.getByRole("button", { name: "Save 1 change" }).click();
  await page.locator(".toast", { hasText: "Saved and applied." }).waitFor();
  assert.deepEqual(await axeInBoth(page), []);

  const other = await context.browser().newContext();
  const second = await other.newPage();
  await signIn("settings", second);
  await page.getByRole("button", { name: "Sign out everywhere…" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Sign out everywhere" }).click();
  await page.locator(".sign-in").waitFor();
  await second.reload();
  await second.locator(".sign-in").waitFor();
  await other.close();
  assert.ok(await daemon.api("GET", "/status"), "the key is still good");
});
