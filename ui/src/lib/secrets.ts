// Secrets: which are missing, and how to extract them from a pasted text. Pure.

import type { ParsedServer, SecretView } from "../api/types";
import { own } from "./own";

/** Returns the missing or locked secrets that a server uses: the given server, or any. */
export function needed(all: readonly SecretView[], server?: string): SecretView[] {
  return all.filter((s) => s.state !== "set" && (server === undefined ? s.used_by.length > 0 : s.used_by.includes(server)));
}

/** Returns where a secret is stored, as text. */
export function keptWords(kept: SecretView["kept"]): string {
  return kept === "file" ? "stored in the encrypted file in the data directory" : "stored in the system keyring";
}

type Found = ParsedServer["secrets"][number];

/** A secret pasted in plain text: its value, the text around it, and the suggested name. */
export interface Clear { value: string; before: string; after: string; name: string }

/**
 * Returns the secret in a value, given the suggested replacement: for "Bearer x" and "Bearer ${env:T}" it is x with the name T.
 * Returns undefined if the two do not match; then nothing is moved.
 */
export function clearOf(value: string | undefined, suggestion: string): Clear | undefined {
  const parts = /^([^]*?)\$\{(?:env|keyring):([^}]+)\}([^]*)$/.exec(suggestion);
  if (!parts || value === undefined) return undefined;
  const [, before = "", name = "", after = ""] = parts;
  // Two secrets in one value cannot be told apart.
  if (after.includes("${env:") || after.includes("${keyring:")) return undefined;
  const inner = value.slice(before.length, value.length - after.length);
  return value.startsWith(before) && value.endsWith(after) && value.length > before.length + after.length ? { value: inner, before, after, name: safe(name) } : undefined;
}

// Names begin with a letter or _, followed by letters, digits, _, - or ., at most 128 characters.
function safe(name: string): string {
  const text = name.replaceAll(/[^\w.-]/g, "_").slice(0, 100);
  return /^[A-Za-z_]/.test(text) ? text : "_" + text;
}

/** Returns the value of one secret in the body of POST /servers. */
export function valueAt(body: Record<string, unknown>, s: Pick<Found, "place" | "name">): string | undefined {
  const part = s.place === "url" ? body.url : own(body[s.place] as Record<string, unknown> | undefined, s.name);
  return typeof part === "string" ? part : undefined;
}

/**
 * Returns a unique name for a value: the suggested one, then with the server as prefix, then with a number.
 * taken contains the used names with their values if known: an equal value gets the same name.
 */
export function nameFor(c: Clear, server: string, taken: ReadonlyMap<string, string | undefined>): string {
  const long = safe(`${server}_${c.name}`);
  for (let i = 1; ; i++) {
    const name = i === 1 ? c.name : i === 2 ? long : `${long}_${i}`;
    if (!taken.has(name) || taken.get(name) === c.value) return name;
  }
}
