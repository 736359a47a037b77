// Converts a pasted text to the bodies for POST /servers.

import type { LaunchView, ParsedServer } from "../api/types";
import { setOwn } from "./own";
import { clearOf, nameFor, valueAt } from "./secrets";

/** The choices of the user about one pasted server. */
export interface Choice {
  /** A new name, if the pasted one is taken. */
  name?: string;
  /** The user excluded it. */
  skip?: boolean;
  /** It was added already, so it is excluded. */
  done?: boolean;
  /** Secrets to store in the file in plain text, by secretKey. */
  plain?: readonly string[];
}

type Secret = ParsedServer["secrets"][number];

export const secretKey = (s: Secret) => `${s.place} ${s.name}`;

/** Returns the command line or the URL of a server. */
export function commandLine(l: Pick<LaunchView, "command" | "args" | "url">): string {
  return l.url ? l.url : argvLine([l.command ?? "", ...(l.args ?? [])]);
}

/** Returns the words of a command as one line. */
export function argvLine(argv: readonly string[]): string {
  return argv.map(quoted).join(" ");
}

function quoted(word: string): string {
  return /^[\w@%+=:,./~${}-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Returns the words of a command line: quotes and backslashes as in a shell, but no other shell syntax. Throws if a quote is not closed. */
export function words(line: string): string[] {
  const out: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let i = 0; i < line.length; i++) {
    const c = line[i]!;
    if (quote) {
      if (c === quote) quote = "";
      else if (c === "\\" && quote === '"' && /["\\]/.test(line[i + 1] ?? "")) word += line[++i]!;
      else word += c;
    } else if (c === "'" || c === '"') {
      quote = c;
      word ??= "";
    } else if (c === "\\" && i + 1 < line.length) {
      word = (word ?? "") + line[++i]!;
    } else if (/\s/.test(c)) {
      if (word !== undefined) out.push(word);
      word = undefined;
    } else {
      word = (word ?? "") + c;
    }
  }
  if (quote) throw new Error(`Missing closing ${quote}.`);
  if (word !== undefined) out.push(word);
  return out;
}

type Named = readonly string[] | Record<string, string>;

/** Returns the environment, headers and directory of a launch: "env GITHUB_TOKEN", "env MODE=fast", "in /tmp". */
export function takes(l: { env?: Named; headers?: Named; working_dir?: string }): string[] {
  const list = (n: Named | undefined, sign: string) => (Array.isArray(n) ? (n as readonly string[]) : Object.entries(n ?? {}).map(([k, v]) => k + sign + v)).join(", ");
  const [env, headers] = [list(l.env, "="), list(l.headers, ": ")];
  return [env && `env ${env}`, headers && `headers ${headers}`, l.working_dir ? `in ${l.working_dir}` : ""].filter(Boolean);
}

/** A pasted secret to store in the keyring: its name, and the text that replaces it. */
export interface Kept { name: string; value: string; text: string }

/**
 * Returns the plain-text secrets of a pasted server to store in the keyring, by secretKey, except those that the user
 * keeps in plain text. taken contains the used names with their values if known; the function adds those of this server.
 */
export function keep(s: ParsedServer, choice: Choice, taken: Map<string, string | undefined>): Map<string, Kept> {
  const out = new Map<string, Kept>();
  for (const secret of s.secrets) {
    if (choice.plain?.includes(secretKey(secret))) continue;
    const clear = clearOf(valueAt(s.add, secret), secret.suggestion);
    if (!clear) continue;
    const name = nameFor(clear, choice.name ?? s.name, taken);
    taken.set(name, clear.value);
    out.set(secretKey(secret), { name, value: clear.value, text: `${clear.before}\${keyring:${name}}${clear.after}` });
  }
  return out;
}

/** Returns the body for POST /servers of a pasted server, with references to the keyring. */
export function bodyOf(s: ParsedServer, choice: Choice = {}, kept: ReadonlyMap<string, Kept> = new Map()): Record<string, unknown> {
  const body = structuredClone(s.add);
  if (choice.name) body.name = choice.name;
  for (const secret of s.secrets) {
    const text = kept.get(secretKey(secret))?.text;
    if (text === undefined) continue;
    if (secret.place === "url") body.url = text;
    else setOwn(body[secret.place] as Record<string, string>, secret.name, text);
  }
  return body;
}

/** Returns why a name is not possible, or "". others are the names of the existing servers and of the other new ones. */
export function nameTrouble(name: string, others: Iterable<string>): string {
  if (!name) return "Enter a name.";
  for (const o of others) if (o.toLowerCase() === name.toLowerCase()) return `A server named ${o} already exists. Choose another name.`;
  return "";
}
