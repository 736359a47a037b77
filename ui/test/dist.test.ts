import { expect, test } from "vitest";

// The committed build. vite can read it without node's types.
const all = import.meta.glob("../../internal/web/dist/**/*", { query: "?raw", import: "default", eager: true }) as Record<string, string>;
const files = Object.fromEntries(Object.entries(all).map(([path, text]) => [path.split("/dist/")[1]!, text]));

async function compressed(text: string): Promise<number> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  return (await new Response(stream).arrayBuffer()).byteLength;
}

async function size(names: string[]): Promise<number> {
  const each = await Promise.all(names.map((name) => compressed(files[name]!)));
  return each.reduce((a, b) => a + b, 0) / 1024;
}

test("all of it has 250 KB compressed, what index.html names has 90 KB less what a page needs", async () => {
  expect(await size(Object.keys(files))).toBeLessThan(250);
  const named = [...files["index.html"]!.matchAll(/(?:src|href)="\/ui\/([^"]+)"/g)].map((m) => m[1]!);
  expect(named.length).toBeGreaterThan(3);
  expect(await size(["index.html", ...named])).toBeLessThan(60);
});

test("nothing in it needs what the policy forbids, or speaks to another host", () => {
  expect(files["index.html"]).not.toMatch(/ style=|<style|<script(?![^>]* src=)/);
  for (const [name, text] of Object.entries(files)) {
    if (name.endsWith(".css")) expect(text).not.toMatch(/url\((?!#)|@import/);
    if (name.endsWith(".js")) expect(text).not.toMatch(/\beval\(|new Function\(|mcpproxy\.dev\.key|X-API-Key/);
  }
});
