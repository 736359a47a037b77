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

test("all files have at most 250 KB compressed, and the files in index.html 90 KB minus those of a page", async () => {
  expect(await size(Object.keys(files))).toBeLessThan(250);
  const named = [...files["index.html"]!.matchAll(/(?:src|href)="\.\/([^"]+)"/g)].map((m) => m[1]!);
  expect(named.length).toBeGreaterThan(3);
  expect(await size(["index.html", ...named])).toBeLessThan(60);
});

test("no file violates the policy or contacts another host", () => {
  expect(files["index.html"]).not.toMatch(/ style=|<style|<script(?![^>]* src=)/);
  for (const [name, text] of Object.entries(files)) {
    if (name.endsWith(".css")) expect(text).not.toMatch(/url\((?!#)|@import/);
    if (name.endsWith(".js")) expect(text).not.toMatch(/\beval\(|new Function\(|mcpproxy\.dev\.key|X-API-Key/);
  }
});
