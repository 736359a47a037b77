import { expect, test } from "vitest";
import { ago, bytes, count, duration, exact, number, percent, short, span, spelled } from "../src/lib/format";

test.each([[0, "0"], [1284, "1,284"], [48213.4, "48,213"]])("number %d", (n, want) => expect(number(n)).toBe(want));
test.each([[999, "999"], [1500, "1.5k"], [12_345, "12k"], [2_000_000, "2M"]])("short %d", (n, want) => expect(short(n)).toBe(want));
test.each([[0, "0 bytes"], [1, "1 byte"], [1023, "1,023 bytes"], [1024, "1 KB"], [4200, "4.1 KB"], [926_720, "905 KB"], [1_048_575, "1 MB"], [1_887_437, "1.8 MB"]])("bytes %d", (n, want) => expect(bytes(n)).toBe(want));
test.each([[0, "0 ms"], [0.3, "0.3 ms"], [0.01, "0.1 ms"], [1.1, "1.1 ms"], [84, "84 ms"], [999.7, "1 s"], [1900, "1.9 s"], [59_999, "1 min"], [125_000, "2 min 5 s"]])("duration %d", (n, want) => expect(duration(n)).toBe(want));
test.each([[0, "0 s"], [38, "38 s"], [720, "12 min"], [3900, "1 h 5 min"], [273_600, "3 d 4 h"], [86_400 * 30, "30 d"]])("span %d", (n, want) => expect(span(n)).toBe(want));

test("words", () => {
  expect(count(1, "tool")).toBe("1 tool");
  expect(count(2000, "reply", "replies")).toBe("2,000 replies");
  expect(spelled(5)).toBe("Five");
  expect(spelled(13)).toBe("13");
  expect(percent(1, 1000)).toBe("< 1 %");
  expect(percent(0, 0)).toBe("–");
});

test("times", () => {
  const now = new Date(2026, 10, 23, 15, 2, 0);
  const before = (seconds: number) => new Date(now.getTime() - seconds * 1000);
  expect([5, 38, 1860, 18_000, 260_000].map((s) => ago(before(s), now))).toEqual(["now", "38 s", "31 min", "5 h", "3 d"]);
  expect(ago(new Date(2026, 9, 8), now)).toBe("8 Oct");
  expect(ago(new Date(2025, 9, 8), now)).toBe("8 Oct 2025");
  expect(exact(new Date(2026, 0, 2, 3, 4, 5, 6))).toMatch(/^2026-01-02 03:04:05\.006 UTC/);
});
