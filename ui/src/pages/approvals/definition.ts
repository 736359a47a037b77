// Compares a definition with the approved one and returns the rows that the page shows.

import type { Difference, Finding, Lane, Piece } from "../../api/types";
import { own } from "../../lib/own";
import { utf16 } from "../../lib/spans";

type Json = Record<string, unknown>;
export const object = (v: unknown): Json => (v && typeof v === "object" && !Array.isArray(v) ? (v as Json) : {});

/** Reports whether two JSON values are equal; the order of members does not matter. */
export function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(sorted(a)) === JSON.stringify(sorted(b));
}

/** Returns a value with its members sorted by name. */
export function sorted(v: unknown): unknown {
  if (Array.isArray(v)) return v.map(sorted);
  if (!v || typeof v !== "object") return v;
  return Object.fromEntries(Object.entries(v).sort(([a], [b]) => (a < b ? -1 : 1)).map(([k, x]) => [k, sorted(x)]));
}

/** Returns the value at a JSON pointer. */
export function at(v: unknown, pointer: string): unknown {
  for (const token of tokens(pointer)) v = Array.isArray(v) ? v[Number(token)] : own(object(v), token);
  return v;
}

export function tokens(pointer: string): string[] {
  return pointer.split("/").slice(1).map((t) => t.replaceAll("~1", "/").replaceAll("~0", "~"));
}

export function pointer(...names: string[]): string {
  return names.map((n) => "/" + n.replaceAll("~", "~0").replaceAll("/", "~1")).join("");
}

/** Returns the pieces of a changed text: REST's, or all of the old and all of the new when they have nothing in common. */
export function pieces(d: Difference | undefined): Piece[] | undefined {
  if (!d) return undefined;
  if (d.words?.length) return d.words;
  const out: Piece[] = [];
  if (typeof d.old === "string" && d.old) out.push({ kind: "removed", text: d.old });
  if (typeof d.new === "string" && d.new) out.push({ kind: "added", text: d.new });
  return out.length ? out : undefined;
}

/** Returns how many words were added and removed: "20 words added, none removed". */
export function wordCount(all: readonly Piece[]): string {
  const n = (kind: Piece["kind"]) => all.filter((p) => p.kind === kind).reduce((sum, p) => sum + (p.text.trim() ? p.text.trim().split(/\s+/).length : 0), 0);
  const added = n("added");
  const removed = n("removed");
  if (added + removed === 0) return "only punctuation or whitespace changed";
  return `${added ? `${added} ${added === 1 ? "word" : "words"}` : "none"} added, ${removed || "none"} removed`;
}

export interface Parameter {
  name: string;
  change: "added" | "removed" | "changed" | "same";
  was?: string;
  is?: string;
  /** Its description, and how the description changed. */
  note?: string;
  pieces?: Piece[];
}

/** Returns the parameters of a definition, changed ones first; was is undefined if no definition is approved. */
export function parameters(is: unknown, was: unknown, changes: readonly Difference[]): Parameter[] {
  const [now, old] = [schema(is), schema(was)];
  const names = [...new Set([...Object.keys(now.properties), ...Object.keys(old.properties)])];
  const rows = names.map((name): Parameter => {
    const [a, b] = [own(old.properties, name), own(now.properties, name)];
    const note = object(b ?? a).description;
    const row: Parameter = { name, change: "same", ...(typeof note === "string" ? { note } : {}) };
    if (a !== undefined) row.was = describe(a, old.required.has(name));
    if (b !== undefined) row.is = describe(b, now.required.has(name));
    if (was === undefined) return row;
    if (a === undefined) row.change = "added";
    else if (b === undefined) row.change = "removed";
    else if (!same(a, b) || row.was !== row.is) row.change = "changed";
    if (row.change === "changed") {
      const d = changes.find((c) => c.path === pointer("inputSchema", "properties", name, "description"));
      const words = pieces(d);
      if (words) row.pieces = words;
      else if (row.was === row.is) row.is += ", schema details changed";
    }
    return row;
  });
  return [...rows.filter((r) => r.change !== "same"), ...rows.filter((r) => r.change === "same")];
}

function schema(definition: unknown): { properties: Json; required: Set<unknown> } {
  const s = object(object(definition).inputSchema);
  const given = Array.isArray(object(definition).arguments) ? (object(definition).arguments as unknown[]).map(object) : [];
  if (given.length) return { properties: Object.fromEntries(given.map((a) => [String(a.name), { ...a, type: "text" }])), required: new Set(given.filter((a) => a.required).map((a) => a.name)) };
  return { properties: object(s.properties), required: new Set(Array.isArray(s.required) ? s.required : []) };
}

/** Describes the type of a value: "string, required", "one of a, b", "integer, default 10". */
export function describe(v: unknown, required: boolean): string {
  const s = object(v);
  const parts = [form(s)];
  if (required) parts.push("required");
  if (s.default !== undefined) parts.push("default " + brief(s.default));
  for (const [word, key] of [["min", "minimum"], ["max", "maximum"], ["max length", "maxLength"], ["pattern", "pattern"]] as const) if (s[key] !== undefined) parts.push(`${word} ${brief(s[key])}`);
  return parts.join(", ");
}

function form(s: Json): string {
  if (Array.isArray(s.enum)) return "one of " + s.enum.slice(0, 12).map(brief).join(", ") + (s.enum.length > 12 ? ` and ${s.enum.length - 12} more` : "");
  if (s.const !== undefined) return "always " + brief(s.const);
  const type = Array.isArray(s.type) ? s.type.join(" or ") : typeof s.type === "string" ? s.type : s.anyOf || s.oneOf ? "one of several types" : "any";
  if (type === "array" && s.items) return "list of " + form(object(s.items));
  return type === "object" && s.properties ? "object with " + Object.keys(object(s.properties)).join(", ") : type;
}

export function brief(v: unknown): string {
  const text = typeof v === "string" ? v : (JSON.stringify(v) ?? "");
  return text.length > 120 ? text.slice(0, 119) + "…" : text;
}

export const hintNames = ["destructiveHint", "readOnlyHint", "idempotentHint", "openWorldHint"] as const;
export interface Hint { name: string; was: string; is: string; changed: boolean; loosened: boolean }

/** Returns the four hints, changed ones first. */
export function hints(is: unknown, was: unknown, loosened: readonly string[]): Hint[] {
  const say = (d: unknown, name: string) => {
    const v = object(object(d).annotations)[name];
    return typeof v === "boolean" ? String(v) : "not set";
  };
  const all = hintNames.map((name) => ({ name, was: say(was, name), is: say(is, name), changed: was !== undefined && say(was, name) !== say(is, name), loosened: loosened.includes(name) }));
  return [...all.filter((h) => h.changed), ...all.filter((h) => !h.changed)];
}

/** Returns the lane by the hints of a definition: destructive wins over read-only; without either hint it is write. */
export function laneOf(definition: unknown): Lane {
  const a = object(object(definition).annotations);
  return a.destructiveHint === true ? "destructive" : a.readOnlyHint === true ? "read" : "write";
}

/** Changes that no other part of the page shows. */
export function otherChanges(changes: readonly Difference[], text: string): Difference[] {
  return changes.filter((c) => c.path !== text && !c.hint && !/^\/(inputSchema\/(properties|required)|arguments)(\/|$)/.test(c.path));
}

/** A text of a definition that has findings. */
export interface Marked { path: string; label: string; text: string }

/** Returns the texts with findings except the one at main, in the order of the findings. */
export function marked(definition: unknown, findings: readonly Finding[], main: string): Marked[] {
  const paths = [...new Set(findings.map((f) => f.path))].filter((p) => p !== main);
  return paths.map((path) => {
    const finding = findings.find((f) => f.path === path)!;
    return { path, label: label(path), text: textAt(definition, finding) };
  });
}

// A finding in a member's name has the pointer of the member.
function textAt(definition: unknown, f: Finding): string {
  const name = tokens(f.path).at(-1) ?? f.path;
  const value = at(definition, f.path);
  if (typeof value !== "string") return name;
  const cut = (s: string) => s.slice(...(utf16(s, [f.start, f.end]) as [number, number]));
  return cut(value) !== f.excerpt && cut(name) === f.excerpt ? name : value;
}

/** Returns a JSON pointer as words: "parameter context, description". */
export function label(path: string): string {
  const t = tokens(path);
  if (t[0] === "inputSchema" && t[1] === "properties" && t[2]) return ["parameter " + t[2], ...t.slice(3).filter((x) => x !== "properties")].join(", ");
  if (t[0] === "outputSchema") return ["output schema", ...t.slice(1).filter((x) => x !== "properties")].join(", ");
  return t.join(", ") || path;
}
