// Numbers, times and sizes in readable form. Everything here is pure: the current time is an argument.

const whole = new Intl.NumberFormat("en-US");

/** Returns 1284 as "1,284". */
export function number(n: number): string {
  return whole.format(Math.round(n));
}

/** Returns 12345 as "12.3k", for narrow places. */
export function short(n: number): string {
  if (n < 1000) return number(n);
  const [value, unit] = n < 999_500 ? [n / 1000, "k"] : [n / 1_000_000, "M"];
  return (value < 9.95 ? value.toFixed(1).replace(/\.0$/, "") : number(value)) + unit;
}

/** Returns "1 tool", "2 tools"; many is the plural, if it is irregular. */
export function count(n: number, one: string, many = one + "s"): string {
  return `${number(n)} ${n === 1 ? one : many}`;
}

/** What "call" means on every page. */
export const callMeaning = "A call is a request sent to a server. Refused calls are not sent and are counted separately. Repeated refusals share one record.";

const words = ["No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"];

/** Returns small numbers as words, for headings. */
export function spelled(n: number): string {
  return words[n] ?? number(n);
}

/** Returns a share as "17 %"; a share above zero is never "0 %". */
export function percent(part: number, all: number): string {
  if (all <= 0) return "–";
  const p = (part / all) * 100;
  return p > 0 && p < 1 ? "< 1 %" : `${Math.round(p)} %`;
}

/** Returns bytes as "905 KB"; a KB is 1,024 bytes. */
export function bytes(n: number): string {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  let unit = 0;
  while (unit < units.length - 1 && n >= 1023.5) {
    n /= 1024;
    unit++;
  }
  if (unit === 0) return n === 1 ? "1 byte" : `${number(n)} bytes`;
  return `${n < 9.95 ? n.toFixed(1).replace(/\.0$/, "") : number(n)} ${units[unit]}`;
}

/** Returns milliseconds as "84 ms", "1.9 s", "2 min 5 s", "3 h 10 min"; below one, "0.3 ms". */
export function duration(ms: number): string {
  if (ms < 0.95) return ms > 0 ? `${Math.max(ms, 0.1).toFixed(1)} ms` : "0 ms";
  if (ms < 999.5) return `${ms < 9.95 ? ms.toFixed(1).replace(/\.0$/, "") : Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1).replace(/\.0$/, "")} s`;
  return span(ms / 1000);
}

/** Returns seconds in two units at most: "3 d 4 h", "5 h", "12 min", "38 s". */
export function span(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  const units: [string, number][] = [["d", 86_400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => s >= size);
  if (first < 0) return "0 s";
  const [name, size] = units[first]!;
  const rest = units[first + 1];
  const more = rest && s < size * 10 ? Math.floor((s % size) / rest[1]) : 0;
  return `${Math.floor(s / size)} ${name}` + (more > 0 ? ` ${more} ${rest![0]}` : "");
}

/** Returns the age in one unit: "now", "38 s", "31 min", "5 h", "3 d"; for older times, the date. */
export function ago(at: Date | string, now: Date): string {
  const t = new Date(at);
  const s = (now.getTime() - t.getTime()) / 1000;
  if (s < 10) return "now";
  if (s < 60) return `${Math.floor(s)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h`;
  if (s < 30 * 86_400) return `${Math.floor(s / 86_400)} d`;
  return date(t, now);
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (n: number) => String(n).padStart(2, "0");

/** Returns "8 Nov", with the year unless it is the current one. */
export function date(at: Date, now: Date): string {
  const year = at.getFullYear() === now.getFullYear() ? "" : ` ${at.getFullYear()}`;
  return `${at.getDate()} ${months[at.getMonth()]}${year}`;
}

/** Returns the local time of the day, "15:02" or "15:02:14". */
export function clock(at: Date | string, seconds = false): string {
  const t = new Date(at);
  return `${two(t.getHours())}:${two(t.getMinutes())}` + (seconds ? `:${two(t.getSeconds())}` : "");
}

/** Returns the milliseconds of a time as ".902", for the faint end of a clock. */
export function millis(at: Date | string): string {
  return "." + String(new Date(at).getMilliseconds()).padStart(3, "0");
}

/** Returns the full local time with its UTC offset, for tooltips. */
export function exact(at: Date | string): string {
  const t = new Date(at);
  if (Number.isNaN(t.getTime())) return String(at);
  const off = -t.getTimezoneOffset();
  const zone = off === 0 ? "UTC" : `UTC${off < 0 ? "−" : "+"}${Math.floor(Math.abs(off) / 60)}${off % 60 ? ":" + two(Math.abs(off) % 60) : ""}`;
  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${clock(t, true)}${millis(t)} ${zone}`;
}
