// Secrets: which are needed, and how a text that was pasted is parted from those in it. Pure.

import type { ParsedServer, SecretView } from "../api/types";
import { own } from "./own";

/** Returns the secrets that have no value that can be used and that a server names; that server, or any. */
export function needed(all: readonly SecretView[], server?: string): SecretView[] {
  return all.filter((s) => s.state !== "set" && (server === undefined ? s.used_by.length > 0 : s.used_by.includes(server)));
}

/** Returns where a secret is kept, in words. */
export function keptWords(kept: SecretView["kept"]): string {
  return kept === "file" ? "stored in the encrypted file in the data directory" : "stored in the system keyring";
}

type Found = ParsedServer["secrets"][number];

/** A secret pasted in plain text: its value, the text around it, and the suggested name. */
export interface Clear { value: string; before: string; after: string; name: string }

/**
 * Returns the secret in the value that the suggestion was made from: of "Bearer x" and "Bearer ${env:T}" it is x, and T its name.
 * undefined when the two do not fit each other: then nothing is moved.
 */
export function clearOf(value: string | undefined, suggestion: string): Clear | undefined {
  const parts = /^([^]*?)\$\{(?:env|keyring):([^}]+)\}([^]*)$/.exec(suggestion);
  if (!parts || value === undefined) return undefined;
  const [, before = "", name = "", after = ""] = parts;
  // Two of them in one value cannot be told apart.
  if (after.includes("${env:") || after.includes("${keyring:")) return undefined;
  const inner = value.slice(before.length, value.length - after.length);
  return value.startsWith(before) && value.endsWith(after) && value.length > before.length + after.length ? { value: inner, before, after, name: safe(name) } : undefined;
}

// Names begin with a letter or _, and have letters, digits, _, -, . up to 128.
function safe(name: string): string {
  const text = name.replaceAll(/[^\w.-]/g, "_").slice(0, 100);
  return /^[A-Za-z_]/.test(text) ? text : "_" + text;
}

/** Returns the value of a place in the body of POST /servers. */
export function valueAt(body: Record<string, unknown>, s: Pick<Found, "place" | "name">): string | undefined {
  const part = s.place === "url" ? body.url : own(body[s.place] as Record<string, unknown> | undefined, s.name);
  return typeof part === "string" ? part : undefined;
}

/**
 * Returns a name for a value that no other value has: the suggested one, with the server before it, with a number.
 * taken has the names that there
 * are, with the value of those that were named here: one value is kept once.
 */
export function nameFor(c: Clear, server: string, taken: ReadonlyMap<string, string | undefined>): string {
  const long = safe(`${server}_${c.name}`);
  for (let i = 1; ; i++) {
    const name = i === 1 ? c.name : i === 2 ? long : `${long}_${i}`;
    if (!taken.has(name) || taken.get(name) === c.value) return name;
  }
}
