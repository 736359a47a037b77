// What becomes of a text that was pasted to add servers: the bodies for POST /servers.

import type { LaunchView, ParsedServer } from "../api/types";

/** What a person chose about one pasted server. */
export interface Choice {
  /** Another name, for one that is taken. */
  name?: string;
  /** Left out. */
  skip?: boolean;
  /** Secrets that are written as reference, by secretKey. */
  hidden?: readonly string[];
}

type Secret = ParsedServer["secrets"][number];

export const secretKey = (s: Secret) => `${s.place} ${s.name}`;

/** Returns how a server is started or reached, as a person types it: one line. */
export function commandLine(l: Pick<LaunchView, "command" | "args" | "url">): string {
  return l.url ? l.url : [l.command ?? "", ...(l.args ?? [])].map(quoted).join(" ");
}

function quoted(word: string): string {
  return /^[\w@%+=:,./~${}-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

/** Returns the words of a command line: quotes and backslashes as in a shell, nothing else of it. Throws when a quote is open. */
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
  if (quote) throw new Error(`A ${quote} is not closed.`);
  if (word !== undefined) out.push(word);
  return out;
}

/** Returns the body for POST /servers of a pasted server. */
export function bodyOf(s: ParsedServer, choice: Choice = {}): Record<string, unknown> {
  const body = structuredClone(s.add);
  if (choice.name) body.name = choice.name;
  for (const secret of s.secrets) if (choice.hidden?.includes(secretKey(secret))) put(body, secret);
  return body;
}

function put(body: Record<string, unknown>, s: Secret): void {
  if (s.place === "url") body.url = s.suggestion;
  else if (body[s.place]) (body[s.place] as Record<string, string>)[s.name] = s.suggestion;
}

/** Returns why a name cannot be had, or "". others are the names of the servers that there are and of those that are added too. */
export function nameTrouble(name: string, others: Iterable<string>): string {
  if (!name) return "It needs a name.";
  for (const o of others) if (o.toLowerCase() === name.toLowerCase()) return `There is a server ${o} already. Give this one another name.`;
  return "";
}
