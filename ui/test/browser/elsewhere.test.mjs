// A page of another local server, on another port, attacks the daemon
// in a signed-in browser. It can read nothing, change nothing, and embed nothing in a frame.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";
import { scene, until } from "./harness.mjs";

test("a page of another local server reads nothing and changes nothing", async (t) => {
  const s = await scene(t, { demo: true });
  const { page, daemon } = s;
  await daemon.tools("notes:list_notes");
  const session = await page.evaluate(() => sessionStorage.getItem("mcpproxy.session"));
  assert.ok(session);
  const before = JSON.stringify((await daemon.api("GET", "/servers")).servers.map((x) => [x.name, x.enabled]));

  const asked = [];
  const evil = createServer((request, response) => {
    asked.push({ path: request.url, cookie: request.headers.cookie, referer: request.headers.referer });
    response.writeHead(200, { "Content-Type": "text/html", "Access-Control-Allow-Origin": "*" }).end("<!doctype html><title>evil</title><body>");
  });
  await new Promise((resolve) => evil.listen(0, "127.0.0.1", resolve));
  t.after(() => (evil.closeAllConnections(), evil.close()));
  const home = `http://127.0.0.1:${evil.address().port}/`;
  const tab = await s.browser.newContext(); // its errors are expected, and do not come from the page under test
  t.after(() => tab.close());
  await tab.addCookies(await s.context.cookies(daemon.url));
  const there = await tab.newPage();
  await there.goto(home);

  const got = await there.evaluate(async ({ url, session }) => {
    const status = (path, o = {}) => fetch(url + path, { credentials: "include", ...o }).then((r) => r.text().then((text) => `${r.type} ${r.status} ${text.length}`), () => "nothing");
    const json = { method: "POST", headers: { "Content-Type": "application/json", "X-MCPProxy-Session": session }, body: "{}" };
    const tagged = (tag, o, ready = "onload") => new Promise((done) => {
      const el = Object.assign(document.createElement(tag), o);
      el[ready] = () => done("loaded");
      el.onerror = () => done("nothing");
      document.body.append(el);
    });
    const results = {
      "itself": await fetch("/").then((r) => String(r.ok)), // shows that a request can succeed
      "fetch a page": await status("/ui/"),
      "fetch the status": await status("/api/v1/status"),
      "fetch with the session's value": await status("/api/v1/status", { headers: { "X-MCPProxy-Session": session } }),
      "change with JSON": await status("/api/v1/servers/notes/disable", json),
      "change with a simple request": await status("/api/v1/servers/notes/disable", { method: "POST", mode: "no-cors", headers: { "Content-Type": "text/plain" }, body: "{}" }),
      "sign in": await status("/api/v1/session", { ...json, body: '{"code":"12345678"}' }),
      "fetch events": await status("/api/v1/events"),
      "fetch MCP": await status("/mcp", json),
      "an image": await tagged("img", { src: url + "/ui/icon.svg" }),
      "a script": await tagged("script", { src: url + "/ui/theme.js" }),
      "EventSource": await new Promise((done) => {
        const e = new EventSource(url + "/api/v1/events", { withCredentials: true });
        e.onopen = () => done("open");
        e.onerror = () => (e.close(), done("nothing"));
      }),
      "WebSocket": await new Promise((done) => {
        const w = new WebSocket(url.replace("http", "ws") + "/mcp");
        w.onopen = () => done("open");
        w.onerror = () => done("nothing");
      }),
      "a beacon": String(navigator.sendBeacon(url + "/api/v1/servers/notes/disable", "{}")),
    };
    // A refused frame shows a page of the browser, which no script can read.
    const frame = document.createElement("iframe");
    frame.src = url + "/ui/";
    await new Promise((done) => (frame.addEventListener("load", done), document.body.append(frame)));
    results["look into a frame"] = await new Promise((done) => {
      try { done(frame.contentDocument ? "seen" : "nothing") } catch { done("nothing") }
    });
    return results;
  }, { url: daemon.url, session });
  const { "change with a simple request": simple, "a beacon": _, itself, ...rest } = got;
  assert.equal(itself, "true");
  for (const [what, result] of Object.entries(rest)) assert.equal(result, "nothing", what);
  assert.match(simple, /^(nothing|opaque 0 0)$/); // sent, but not readable; the effects are checked below
  for (const frame of there.frames().slice(1)) assert.doesNotMatch(await frame.content(), /MCPProxy/, "a frame shows the page");

  // A form is sent as a navigation: it can arrive, but changes nothing.
  await there.evaluate((url) => {
    document.body.insertAdjacentHTML("beforeend", `<form method=post enctype="text/plain" action="${url}/api/v1/servers/notes/disable"><input name='{"a":"' value='"}'></form>`);
    document.forms[0].submit();
  }, daemon.url);
  await there.waitForURL(/api\/v1/);
  assert.doesNotMatch(await there.content(), /"enabled"|"name":"notes"/);

  // A window that it opens shows the page, but the opener cannot access it.
  await there.goto(home);
  const opened = there.context().waitForEvent("page");
  await there.evaluate((url) => void (globalThis.w = open(url + "/ui/overview")), daemon.url);
  await (await opened).waitForLoadState();
  const reach = await there.evaluate(() => {
    try { return globalThis.w.closed ? "nothing" : String(globalThis.w.document?.title) } catch { return "nothing" }
  });
  assert.equal(reach, "nothing");

  assert.equal(JSON.stringify((await daemon.api("GET", "/servers")).servers.map((x) => [x.name, x.enabled])), before);
  assert.equal(await until("the page still works", () => page.evaluate((v) => fetch("/api/v1/status", { headers: { "X-MCPProxy-Session": v } }).then((r) => r.status), session)), 200);
  assert.deepEqual(asked.filter((a) => a.referer && !a.referer.startsWith(home)), []);
});
