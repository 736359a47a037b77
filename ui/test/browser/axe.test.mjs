// axe-core finds nothing: on every page and state, in both themes, at 1440 pixels; in a full run at 390 pixels, too.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { axeInBoth, desktop, full, phone, scene, settled } from "./harness.mjs";
import { Daemon } from "./daemon.mjs";
import { eachSheet, pages, places } from "./pages.mjs";
import { startWorld } from "./world.mjs";

const sizes = { "1440 px": desktop, ...(full && { "390 px": phone }) };
let world;
before(async () => (world = await startWorld()));
after(() => world?.close());

for (const [size, context] of Object.entries(sizes)) {
  const still = { ...context, reducedMotion: "reduce" };

  test(`every page and state, ${size}`, async (t) => {
    const { page, visit } = await scene(t, { daemon: world, context: still });
    const findings = [];
    const look = async (where) => findings.push(...(await axeInBoth(page)).map((f) => `${where}: ${f}`));
    const seen = {};
    for (const place of await places(world)) {
      await visit(place);
      await look(place);
      await eachSheet(page, (seen[place.split("?")[0]] ??= new Set()), (name) => look(`${place}, ${name}`));
    }
    for (const key of ["Control+k", "?"]) {
      await page.keyboard.press(key);
      await page.locator("dialog[open]").waitFor();
      await look(key);
      await page.keyboard.press("Escape");
    }
    assert.deepEqual(findings, []);
  });

  test(`without any server, signed out, offline, ${size}`, async (t) => {
    const daemon = await Daemon.run();
    t.after(() => daemon.close());
    const { page, visit, signIn } = await scene(t, { daemon, context: still, signIn: false, allow: [/ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET/] });
    const findings = [];
    const look = async (where) => findings.push(...(await axeInBoth(page)).map((f) => `${where}: ${f}`));
    await visit("overview");
    await look("signed out");
    await signIn();
    for (const { name } of pages) {
      await visit(name);
      await look(`${name} without servers`);
    }
    await daemon.kill();
    await page.locator(".banner").waitFor();
    await settled(page);
    await look("offline");
    assert.deepEqual(findings, []);
  });
}
