import { expect, test } from "vitest";
import { ends, label, localTime, params, step, within } from "../src/lib/range";

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
  expect(within({ since: "7d", until: "" }, now)).toBe("in the last 7 days");
});

test("REST", () => {
  expect(params({ since: at(14, 0), until: at(14, 30) }, now)).toEqual({ start_time: at(14, 0), end_time: at(14, 30) });
  expect(params({ since: "1h", until: "" }, now)).not.toHaveProperty("end_time");
  expect(step({ since: "24h", until: "" }, now)).toBe("30m");
  expect(step({ since: "1h", until: "" }, now)).toBe("2m");
  expect(step({ since: "30d", until: "" }, now)).toBe("24h");
});

test("a time of one's own", () => {
  expect(localTime(new Date(2026, 0, 2, 3, 4, 59))).toBe("2026-01-02T03:04");
  const range = { since: new Date(localTime(new Date(2026, 10, 23, 8, 0))).toISOString(), until: "" };
  expect(ends(range, now)).toEqual({ from: new Date(2026, 10, 23, 8, 0), to: now });
});
