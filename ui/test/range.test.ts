import { expect, test } from "vitest";
import { ends, fitting, label, localTime, params, shortest, step, within } from "../src/lib/range";

const now = new Date(2026, 10, 23, 15, 2, 0);
const at = (h: number, m: number, day = 23) => new Date(2026, 10, day, h, m).toISOString();

test("ends", () => {
  expect(ends({ since: "24h", until: "" }, now)).toEqual({ from: new Date(2026, 10, 22, 15, 2, 0), to: now });
  expect(ends({ since: at(14, 0), until: at(14, 30) }, now).to).toEqual(new Date(2026, 10, 23, 14, 30));
  expect(ends({ since: "nonsense", until: "" }, now).from).toEqual(new Date(2026, 10, 22, 15, 2, 0));
  expect(ends({ since: at(15, 0), until: at(14, 0) }, now).to).toEqual(now);
});

test("labels", () => {
  expect(label({ since: "24h", until: "" }, now)).toBe("Last 24 hours");
  expect(label({ since: at(14, 0), until: at(14, 30) }, now)).toBe("14:00 to 14:30");
  expect(label({ since: at(22, 0, 21), until: at(1, 0, 22) }, now)).toBe("21 Nov 22:00 to 22 Nov 01:00");
  expect(label({ since: at(22, 0, 22), until: at(1, 0) }, now)).toBe("22 Nov 22:00 to 23 Nov 01:00"); // not within one day
  expect(within({ since: "7d", until: "" }, now)).toBe("in the last 7 days");
});

test("REST", () => {
  expect(params({ since: at(14, 0), until: at(14, 30) }, now)).toEqual({ start_time: at(14, 0), end_time: at(14, 30) });
  expect(params({ since: "1h", until: "" }, now)).not.toHaveProperty("end_time");
  expect(step({ since: "24h", until: "" }, now)).toBe("30m");
  expect(step({ since: "1h", until: "" }, now)).toBe("2m");
  expect(step({ since: "30d", until: "" }, now)).toBe("24h");
});

test("a custom time range", () => {
  expect(localTime(new Date(2026, 0, 2, 3, 4, 59))).toBe("2026-01-02T03:04");
  const range = { since: new Date(localTime(new Date(2026, 10, 23, 8, 0))).toISOString(), until: "" };
  expect(ends(range, now)).toEqual({ from: new Date(2026, 10, 23, 8, 0), to: now });
});

test("the default range is the shortest that contains all records, at most a week", () => {
  const old = (ms: number) => new Date(now.getTime() - ms);
  const [m, h] = [60_000, 3_600_000];
  expect([0, 10 * m, 30 * m, 2 * h, 20 * h, 30 * h, 100 * 24 * h].map((age) => fitting(old(age), now))).toEqual(["15m", "15m", "1h", "6h", "24h", "7d", "7d"]);
  expect(shortest(old(60 * 24 * h), now)).toBeUndefined();
});

test("the range of all records begins with the first", () => {
  const range = { since: "all", until: "", first: new Date(2026, 5, 1) };
  expect(ends(range, now)).toEqual({ from: range.first, to: now });
  expect([label(range, now), within(range, now), step(range, now)]).toEqual(["All records", "since the first record", "168h"]);
  expect(params(range, now)).toEqual({ start_time: range.first.toISOString() });
});
