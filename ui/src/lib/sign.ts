// The challenge that a passkey signs, and the claims that are shown. Pure.

import type { Anchor, Asked, Statement } from "./presence";

export function statementText(s: Statement): string {
  return JSON.stringify({ claims: s.claims, count: s.count, at: s.at, for: s.for, nonce: s.nonce, anchor: s.anchor });
}

/** Returns the SHA-256 of a text, with a domain prefix. */
export async function digest(domain: string, text: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(`mcpproxy presence ${domain} v1\n${text}`)));
}

const hex = (bytes: Uint8Array) => Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");

/** Returns the fingerprint of a passkey's anchor, whose since has milliseconds. */
export async function fingerprint(a: Anchor): Promise<string> {
  const lines = [a.kind, a.since.replace("Z", "000Z"), a.before, hex(fromBase64(a.key ?? "")), hex(fromBase64(a.credential ?? "")), `"${a.origin}"`];
  return "sha256:" + hex(await digest("anchor", lines.map((l) => l + "\n").join("")));
}

/**
 * Returns the challenge for a request, such as "PUT /api/v1/presence"; throws when
 * the claims shown differ from those to sign.
 */
export async function challenge({ statement, claims }: Asked, request: string): Promise<Uint8Array<ArrayBuffer>> {
  if (statement.for !== request) throw new Error("Not signed: the statement is for another request.");
  const sum = await digest("claims", claims.map((c) => c + "\n").join(""));
  if (statement.count !== claims.length || statement.claims !== "sha256:" + hex(sum)) throw new Error("Not signed: the statement does not match the changes shown.");
  return digest("statement", statementText(statement));
}

export function base64url(bytes: ArrayBuffer | Uint8Array): string {
  return base64(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

export function base64(bytes: ArrayBuffer | Uint8Array): string {
  return btoa(Array.from(new Uint8Array(bytes), (b) => String.fromCharCode(b)).join(""));
}

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

/** Returns the header with a statement and the authenticator's assertion. */
export function signed(s: Statement, id: ArrayBuffer, r: { authenticatorData: ArrayBuffer; clientDataJSON: ArrayBuffer; signature: ArrayBuffer }): string {
  const text = new TextEncoder();
  const assertion = [id, r.authenticatorData, r.clientDataJSON, r.signature].map((b) => base64url(b)).join(".");
  return `${base64url(text.encode(statementText(s)))}.${base64url(text.encode(assertion))}`;
}

/** Splits a claim into its words and its quoted values. */
export function claimParts(claim: string): { words: string; values: string[] } {
  const first = claim.indexOf(' "');
  const words = first < 0 ? claim : claim.slice(0, first);
  const values = first < 0 ? [] : [...claim.slice(first).matchAll(/ "((?:[^"\\]|\\.)*)"/g)].map((m) => m[1]!);
  return { words: words.charAt(0).toUpperCase() + words.slice(1), values };
}

/** Returns the number of claims of each kind, in order. */
export function claimCounts(claims: readonly string[]): { words: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const c of claims) {
    const { words } = claimParts(c);
    counts.set(words, (counts.get(words) ?? 0) + 1);
  }
  return [...counts].map(([words, count]) => ({ words, count })).sort((a, b) => (a.words < b.words ? -1 : 1));
}
