import { expect, test } from "vitest";
import guideText from "../../docs/guide/clients.md?raw";
import { clientGuides, clientName, usualAddress } from "../src/lib/connect";
import { clients } from "../src/pages/overview/start/clients";

// Space between words is the formatter's; a table has the inner part of an object alone.
const bare = (text: string) => text.replace(/\s+/g, "");
const guide = bare(guideText);
const snippets = clientGuides().flatMap((g) => g.connect.map((s) => [`${g.name}: ${s.where}`, s.text] as const));

test.each(snippets)("the guide has the snippet of %s", (_, text) => {
  const all = bare(text);
  expect(guide.includes(all) || guide.includes(all.replace(/^\{(.*)\}$/, "$1"))).toBe(true);
});

test("the guide has the rules of each client whose permissions can be written", () => {
  for (const g of clientGuides()) if (g.permissions) expect(guideText).toContain(`<!-- permissions ${g.permissions} -->\nIn \``);
});

test("the first run has them, too", () => {
  for (const c of clients) expect(c.name === "Another" ? [usualAddress] : snippets.map(([, text]) => text)).toContain(c.text(usualAddress));
});

test("snippets have the address that is asked for", () => {
  for (const g of clientGuides("http://127.0.0.1:9999/mcp")) {
    if (g.id === "claude-desktop") continue;
    for (const s of g.connect) expect(s.text).toContain("http://127.0.0.1:9999/mcp");
  }
  expect(new Set(clientGuides().map((g) => g.id)).size).toBe(clientGuides().length);
});

test("clients by the names that people know", () => {
  expect(clientName("claude-code")).toBe("Claude Code");
  expect(clientName("Visual Studio Code")).toBe("VS Code");
  expect(clientName("codex-mcp-client")).toBe("Codex");
  expect(clientName("my-agent")).toBe("my-agent");
});
