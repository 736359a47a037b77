// Twenty tabs of one browser share six connections. Each shows its page and
// receives changes, also after the tab that reads for all is closed, and after a restart.
import assert from "node:assert/strict";
import { test } from "node:test";
import { scene, settled } from "./harness.mjs";
import { pages } from "./pages.mjs";

const tool = (name, description) => ({ name, description, inputSchema: { type: "object" }, annotations: { readOnlyHint: true } });
const waiting = (n) => (page) => page.waitForFunction((want) => document.querySelector('nav a[href^="/ui/approvals"]')?.getAttribute("aria-label")?.includes(`${want} pending`), n);

test("twenty tabs are live", async (t) => {
  const { page, context, daemon, visit } = await scene(t, { scripts: { one: { tools: [tool("a", "First."), tool("b", "Second.")] } }, allow: [/net::ERR_(CONNECTION_REFUSED|CONNECTION_RESET|INCOMPLETE_CHUNKED_ENCODING|EMPTY_RESPONSE)/] });
  await daemon.tools("one:a");
  const tabs = [page];
  const streams = new Set();
  context.on("request", (r) => r.url().endsWith("/api/v1/events") && streams.add(r.frame().page()));
  for (let i = 1; i < 20; i++) {
    const tab = await context.newPage();
    await visit(pages[i % pages.length].name, tab);
    tabs.push(tab);
  }
  const live = (tab) => tab.getByText("Live", { exact: true }).waitFor();
  await Promise.all(tabs.map(live));
  assert.equal(streams.size, 0, "only the first one reads");

  await daemon.scripted("one", { tools: [tool("a", "First, and changed."), tool("b", "Second.")] });
  await Promise.all(tabs.map(waiting(1)));

  await tabs.shift().close();
  await daemon.scripted("one", { tools: [tool("a", "First, and changed."), tool("b", "Second, and changed.")] });
  await Promise.all(tabs.map(waiting(2)));
  await Promise.all(tabs.map(live));
  assert.equal(streams.size, 1, "one goes on");

  await daemon.kill();
  await Promise.all(tabs.map((tab) => tab.locator(".banners [role=status]").waitFor()));
  await tabs.at(-1).getByRole("button", { name: "Retry now" }).click(); // a tab that does not read the stream
  await daemon.start();
  await tabs.at(-1).getByRole("button", { name: "Retry now" }).click({ timeout: 1000 }).catch(() => {}); // or it reconnected automatically
  await Promise.all(tabs.map(live));
});
