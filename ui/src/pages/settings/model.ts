// What the settings are called, and what a draft of them says. Pure.

import type { PageName } from "../../router";
import type { Config, Mistake, Setting, Validation } from "../../api/types";
import { clock, count, date, number, spelled } from "../../lib/format";
import { own } from "../../lib/own";

/** Settings with their new values; null takes one out of the file. */
export type Changes = Readonly<Record<string, unknown>>;

/** What is not saved: a text of the file, and settings to put into it. */
export interface Draft {
  /** The file that it began with. */
  base: Config;
  /** Absent: the file's own. */
  text?: string;
  set: Changes;
}

export interface Words {
  key: string;
  label: string;
  note: (value: (key: string) => unknown) => string;
  options?: Record<string, string>;
  unit?: string;
}

const says = (text: string) => () => text;
const figure = (v: unknown) => (typeof v === "number" ? number(v) : String(v));

/** The settings that matter most, in plain words. */
export const groups: readonly { title: string; rows: readonly Words[] }[] = [
  {
    title: "Calls",
    rows: [
      { key: "intent_declaration.strict_server_validation", label: "A server contradicts the lane", note: says("Or let it through with a warning."), options: { true: "Refuse", false: "Warn" } },
      { key: "intent_declaration.infer_hints", label: "Tools that say nothing", note: says("Guess what they do, and warn. Enforce takes the guess as if the server had said it."), options: { off: "Do not guess", advise: "Advise", enforce: "Enforce" } },
      { key: "validate_arguments", label: "Arguments that do not fit the schema", note: says("Say where, and give the schema."), options: { reject: "Refuse", warn: "Warn", off: "Do not check" } },
      { key: "call_timeout", label: "A call may take", note: says("Two minutes unless you say otherwise.") },
    ],
  },
  {
    title: "Search",
    rows: [
      { key: "tools_limit", label: "Tools in an answer", note: says("When the agent does not say how many.") },
      { key: "tools_detail", label: "What an agent reads of a tool", note: says("Compact: one line, about a third of the tokens."), options: { auto: "Whole schema of the best three", full: "Whole schema", compact: "Compact" } },
    ],
  },
  {
    title: "Log",
    rows: [
      { key: "activity_retention_days", label: "Keep records for", unit: "days", note: (v) => `Or ${figure(v("activity_max_records"))} records, or ${figure(v("activity_max_size_mb"))} MB, whichever comes first.` },
      { key: "activity_durability", label: "A record survives", note: says("Or the loss of power; calls take longer by the time of the disk."), options: { process: "The end of the process", power: "The loss of power" } },
    ],
  },
];

const main = new Set(groups.flatMap((g) => g.rows.map((r) => r.key)));

/** Returns the settings that have no words of their own. */
export const others = (all: readonly Setting[]) => all.filter((s) => !main.has(s.key));

/** Returns what a setting is in a draft; validation is what was said of it last. */
export function valueOf(s: Setting, draft: Draft | undefined, validation: Validation | undefined): unknown {
  if (!draft) return s.value;
  if (s.key in draft.set) return draft.set[s.key] ?? s.default;
  const change = draft.text === undefined ? undefined : validation?.changes.find((c) => c.key === s.key);
  return change ? (change.to ?? s.default) : s.value;
}

/** Reports whether a draft changes a setting. */
export function isChanged(s: Setting, draft: Draft | undefined, validation: Validation | undefined): boolean {
  return !!draft && (s.key in draft.set || (draft.text !== undefined && !!validation?.changes.some((c) => c.key === s.key)));
}

/** Returns the draft with a setting changed; undefined when nothing is left of it. */
export function withSetting(file: Config, draft: Draft | undefined, s: Setting, value: unknown): Draft | undefined {
  const d = draft ?? { base: file, set: {} };
  const { [s.key]: _, ...set } = d.set;
  const asBefore = d.text === undefined && (value === null ? !s.set : same(value, s.value));
  if (!asBefore) return { ...d, set: { ...set, [s.key]: value } };
  return Object.keys(set).length > 0 ? { ...d, set } : undefined;
}

/** Returns the draft with another text; applied says that the text has what was set. */
export function withText(file: Config, draft: Draft | undefined, text: string, applied: boolean): Draft | undefined {
  const base = draft?.base ?? file;
  const set = applied ? {} : (draft?.set ?? {});
  return text === base.text && Object.keys(set).length === 0 ? undefined : { base, text, set };
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/** Reads what was typed. What is no number goes to MCPProxy as it is, which says what is wrong with it. */
export function typed(type: Setting["type"], text: string): unknown {
  if (type === "list") return text.split("\n");
  return type === "integer" && /^\s*-?\d{1,15}\s*$/.test(text) ? Number(text) : type === "boolean" ? text === "true" : text;
}

/** Returns a value as it is typed. */
export function shown(value: unknown): string {
  return Array.isArray(value) ? value.join("\n") : typeof value === "string" ? value : JSON.stringify(value);
}

/** Returns a value in a sentence: “none” of what is empty. */
export function said(value: unknown): string {
  return (Array.isArray(value) ? value.join(", ") : typeof value === "boolean" ? (value ? "on" : "off") : shown(value)) || "none";
}

/** Returns what is known of a setting besides its text. */
export function facts(s: Setting): string {
  return [`Default: ${said(s.default)}.`, s.range ? `${s.range.charAt(0).toUpperCase() + s.range.slice(1)}.` : "", s.restart ? "Needs a restart." : ""].filter(Boolean).join(" ");
}

export interface Piece { text: string; code: boolean }

/** Returns the pieces of a text with `code`; links become their words. */
export function pieces(markdown: string): Piece[] {
  const plain = markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1");
  return plain.split("`").map((text, i) => ({ text, code: i % 2 === 1 })).filter((p) => p.text);
}

/** Returns the answer that heads the page. */
export function heading(c: Config, now: Date): string {
  const n = c.mistakes?.length ?? 0;
  if (c.error) return `The saved file has ${n > 1 ? spelled(n).toLowerCase() + " mistakes" : "a mistake"}`;
  return `In force since ${moment(c.in_force_since, now)}`;
}

/** Returns "14:20", of another day "8 Nov, 14:20". */
export function moment(at: string, now: Date): string {
  const t = new Date(at);
  return (t.toDateString() === now.toDateString() ? "" : date(t, now) + ", ") + clock(t);
}

/** Returns the sentences below the heading. */
export function lead(c: Config, draft: Draft | undefined, changes: number, now: Date): string {
  const out = [c.error ? `What was in force since ${moment(c.in_force_since, now)} stays.` : "The same as the saved file."];
  if (c.unconfirmed.length > 0 || c.unconfirmed_why) out[0] = unconfirmed(c);
  if (draft) out.push(changes === 0 ? "What you changed here is not saved." : `${spelled(changes)} ${changes === 1 ? "change here is" : "changes here are"} not saved.`);
  if (c.needs_restart.length > 0) out.push(`${c.needs_restart.join(", ")} ${c.needs_restart.length === 1 ? "waits" : "wait"} for a restart.`);
  return out.join(" ");
}

// What of the file is not in force, and what to do about it.
function unconfirmed(c: Config): string {
  const keys = c.unconfirmed.map((d) => d.key);
  const shown = keys.length > 3 ? `${keys.slice(0, 3).join(", ")} and ${number(keys.length - 3)} more` : keys.join(", ");
  const what = keys.length > 0 ? `What widens in the saved file waits for you: ${shown}.` : "";
  const why = c.unconfirmed_why ? `Nothing that widens counts: ${c.unconfirmed_why}.` : "";
  return [why, what, "Confirm it here or in a terminal: mcpproxy config confirm."].filter(Boolean).join(" ");
}

/** Returns how many things a draft changes. */
export function changeCount(draft: Draft | undefined, validation: Validation | undefined): number {
  if (!draft) return 0;
  return draft.text === undefined ? Object.keys(draft.set).length : (validation?.changes.length ?? 0);
}

/** Returns what saving does. */
export function effect(v: Validation): string {
  if (v.needs_restart.length > 0) return `${v.needs_restart.join(", ")} ${v.needs_restart.length === 1 ? "waits" : "wait"} for a restart`;
  const servers = new Set(v.changes.filter((c) => c.key.startsWith("mcpServers.")).map((c) => c.key.split(".")[1]));
  return servers.size > 0 ? `Applies at once, also to ${count(servers.size, "server")}` : "Applies at once, nothing restarts";
}

/** Returns where a mistake is. */
export function place(m: Mistake): string {
  return [m.line > 0 ? `Line ${number(m.line)}` : "", m.key ?? ""].filter(Boolean).join(", ");
}

/** Returns what is wrong, and what to do. */
export const wrong = (m: Mistake) => m.message + (m.hint ? ` (${m.hint})` : "");

/** Reports whether a text has placeholders of secrets. */
export const hasSecrets = (text: string) => text.includes("***masked:");

const checkPages: Record<string, { page: PageName; label: string; params?: Record<string, string> }> = {
  server: { page: "servers", label: "Look at the servers" }, login: { page: "servers", label: "Log in" }, approvals: { page: "approvals", label: "Review" }, approvals_lost: { page: "approvals", label: "Review" },
  log: { page: "activity", label: "Look at the log" }, config_file: { page: "settings", label: "Correct the file", params: { view: "file" } }, config_unconfirmed: { page: "settings", label: "See the file", params: { view: "file" } },
  config_history: { page: "settings", label: "See the history", params: { view: "history" } },
};

/** Returns the page on which what a check found is put right; undefined where there is none, or nothing is wrong. A server that its title names is opened. */
export function checkPage(c: { code: string; state: string; title: string }, servers: readonly string[]): { page: PageName; label: string; params: Record<string, string> } | undefined {
  const to = c.state === "ok" ? undefined : own(checkPages, c.code);
  if (!to) return undefined;
  const name = to.page === "servers" ? servers.filter((s) => c.title.split(/[\s:,'"]+/).includes(s)).sort((a, b) => b.length - a.length)[0] : undefined;
  return { page: to.page, label: name ? `Look at ${name}` : to.label, params: { ...to.params, ...(name ? { id: name } : {}) } };
}
