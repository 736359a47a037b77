import { expect, test } from "vitest";
import { PageCache } from "../src/data/window";
import { drawn, pages, reveal } from "../src/lib/rows";

test("only rows in view are drawn, and the heights add up", () => {
  const total = 100_000;
  for (const top of [0, 31, 32, 5000, 3_199_000, 9_999_999]) {
    const d = drawn(total, 32, top, 640);
    expect(d.last - d.first).toBeLessThanOrEqual(20 + 1 + 24 + 1);
    expect(d.before + (d.last - d.first) * 32 + d.after).toBe(total * 32);
  }
  expect(drawn(100_000, 32, 3200, 640, 0)).toMatchObject({ first: 100, last: 120 });
  expect(drawn(0, 32, 0, 640)).toEqual({ first: 0, last: 0, before: 0, after: 0 });
});

test("a million rows fit into a box that browsers can make, to the last one", () => {
  const [total, height, view] = [1_000_000, 62, 640];
  const ends = [0, 1, 777_777, 7_000_000, 15_000_000 - view].map((top) => ({ top, d: drawn(total, height, top, view) }));
  for (const { top, d } of ends) {
    expect(d.before + (d.last - d.first) * height + d.after).toBeCloseTo(15_000_000, 3);
    expect(d.before).toBeLessThanOrEqual(top); // the rows cover the view
    expect(d.before + (d.last - d.first) * height).toBeGreaterThanOrEqual(top + view - 1e-6);
  }
  expect(ends[0]!.d.first).toBe(0);
  expect(ends.at(-1)!.d.last).toBe(total);
  const top = reveal(654_321, total, height, 0, view, 30);
  const d = drawn(total, height, top, view, 0);
  expect(d.first <= 654_321 && 654_321 < d.last).toBe(true);
});

test("a row is scrolled into view below the header", () => {
  expect(reveal(0, 1000, 32, 100, 640, 30)).toBe(0);
  expect(reveal(5, 1000, 32, 100, 640, 30)).toBe(100);
  expect(reveal(50, 1000, 32, 0, 640, 30)).toBe(51 * 32 - 610);
});

test("pages that contain rows", () => {
  expect(pages(0, 1, 500)).toEqual([0]);
  expect(pages(490, 510, 500)).toEqual([0, 500]);
  expect(pages(1000, 1000, 500)).toEqual([]);
});

test("at most twenty pages are cached, and requests for pages outside the view are cancelled", async () => {
  const asked: number[] = [];
  const signals = new Map<number, AbortSignal>();
  const cache: PageCache<number> = new PageCache(async (offset, limit, signal) => {
    asked.push(offset);
    signals.set(offset, signal);
    return { rows: Array.from({ length: limit }, (_, i) => offset + i), total: 50_000 };
  }, () => {}, 500);
  for (let at = 0; at < 50_000; at += 500) {
    cache.want(at, at + 40);
    await new Promise((r) => setTimeout(r));
    expect(cache.row(at + 7)).toBe(at + 7);
  }
  expect(cache.count).toBe(20);
  expect(cache.total).toBe(50_000);
  expect(cache.row(3)).toBeUndefined();
  cache.want(0, 40);
  cache.want(40_000, 40_040); // the cached rows suffice: no request
  expect(signals.get(0)!.aborted).toBe(true);
  expect(asked).toHaveLength(101);
});

test("an expanded row moves the rows below it", () => {
  const extras = new Map([[1, 100], [5, 50]]);
  const all = drawn(20, 10, 0, 2000, 0, extras);
  expect(all).toEqual({ first: 0, last: 20, before: 0, after: 0 });
  // 0: 0–10, 1: 10–20 and below it to 120, 2: 120, 3: 130, 4: 140, 5: 150–160 and to 210, 6: 210
  expect(drawn(20, 10, 60, 70, 0, extras)).toEqual({ first: 1, last: 3, before: 10, after: 220 });
  expect(drawn(20, 10, 120, 10, 0, extras)).toEqual({ first: 2, last: 3, before: 120, after: 220 });
  expect(drawn(20, 10, 215, 5, 0, extras)).toEqual({ first: 6, last: 7, before: 210, after: 130 });
  for (let top = 0; top < 300; top += 7) {
    const d = drawn(20, 10, top, 30, 2, extras);
    expect(d.before).toBeLessThanOrEqual(top);
    let height = d.before + d.after;
    for (let i = d.first; i < d.last; i++) height += 10 + (extras.get(i) ?? 0);
    expect(height).toBe(350);
  }
});
