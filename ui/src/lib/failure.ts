// Why a server does not run, from the end of its log. Pure.

import type { LogLine, Server } from "../api/types";
import { count } from "./format";

// Patterns of error lines, the most specific first. Stack traces and closing lines of package managers are ignored.
const clear: readonly RegExp[] = [
  /\b(is|are|was)? ?not set\b|\bmust be set\b|\b(is|are) (missing|required|undefined|empty)\b|\b(missing|requires?|required|set|provide)\b.*\b[A-Z][A-Z0-9]*_[A-Z0-9_]+\b/i,
  /\b(not found|could not be found|no such file|cannot find|command not found|ENOENT|EACCES|EADDRINUSE|ECONNREFUSED|ENOTFOUND|permission denied|connection refused|unauthorized|forbidden|invalid|unknown|unsupported|is not recognized)\b/i,
  /(error|exception|panic|fatal|failed|cannot|could not|unable to)\b/i,
];
const noise = /^\s*(at |File "|\^|~|\.\.\.|node:internal|Traceback|goroutine |Node\.js v\d|npm (error|ERR!) (A complete log|code\b|errno|syscall|path)|note: )/;

/** Returns the log line that explains why the server ended; undefined if there is none. */
export function decisive(lines: readonly LogLine[]): LogLine | undefined {
  const said = lines.filter((l) => l.stream !== "mcpproxy" && l.text.trim() !== "" && !noise.test(l.text));
  for (const words of clear) {
    const line = said.findLast((l) => words.test(l.text));
    if (line) return line;
  }
  return undefined;
}

/** Returns the name of the environment variable that a line reports as not set; "" if there is none. */
export function variableIn(text: string): string {
  if (!clear[0]!.test(text)) return "";
  return /\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/.exec(text)?.[0] ?? "";
}

const ended = (l: LogLine | undefined): boolean => l?.stream === "mcpproxy" && /^(not |dis)connected\b/.test(l.text);

/** Returns how often a server has ended, according to its log and its restarts: "3 times", "" for once. */
export function times(s: Pick<Server, "restarts">, lines: readonly LogLine[]): string {
  const n = Math.max(s.restarts ? s.restarts + 1 : 0, lines.filter(ended).length);
  return n > 1 ? count(n, "time") : "";
}

/** Returns why a server is not available, as a sentence without the output of its process. A download problem takes precedence over the result of the last start. */
export function cause(s: Pick<Server, "failure" | "last_error" | "trouble">): string {
  const ours = (s.failure ?? "").replace(/^[A-Z_]+: /, "");
  const said = s.trouble || (s.failure?.startsWith("EXITED: ") ? ours : s.last_error || ours) || "not connected";
  const exit = /^exit status (\d+)$/.exec(said);
  const text = exit ? `exited with code ${exit[1]}` : said;
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}

/** Returns the last lines of the last start, at most count. MCPProxy's own line about the exit marks the end of a start. */
export function lastTry(lines: readonly LogLine[], count: number): LogLine[] {
  let from = lines.length - 1;
  while (from > 0 && !ended(lines[from - 1])) from--;
  return lines.slice(Math.max(0, from)).slice(-count);
}
