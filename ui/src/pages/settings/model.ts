// The labels of settings, and the state of a draft. Pure.

import type { PageName } from "../../router";
import type { Config, Mistake, Setting, Validation } from "../../api/types";
import { clock, count, date, number } from "../../lib/format";
import { own } from "../../lib/own";

/** Settings with their new values; null removes one from the file. */
export type Changes = Readonly<Record<string, unknown>>;

/** Unsaved changes: a text of the file, and settings to change in it. */
export interface Draft {
  /** The file when the draft began. */
  base: Config;
  /** Absent: the text of the file. */
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

/** The most used settings, with labels. */
export const groups: readonly { title: string; rows: readonly Words[] }[] = [
  {
    title: "Calls",
    rows: [
      { key: "intent_declaration.strict_server_validation", label: "Lane contradicts the hints", note: says("Refuse the call, or run it with a warning."), options: { true: "Refuse", false: "Warn" } },
      { key: "intent_declaration.infer_hints", label: "Tools without hints", note: says("Infer hints and warn. Enforce treats inferred hints like declared ones."), options: { off: "Do not infer", advise: "Advise", enforce: "Enforce" } },
      { key: "validate_arguments", label: "Arguments that do not match the schema", note: says("The error names the field and includes the schema."), options: { reject: "Refuse", warn: "Warn", off: "Do not check" } },
      { key: "call_timeout", label: "Call timeout", note: says("The default is 2 minutes.") },
    ],
  },
  {
    title: "Search",
    rows: [
      { key: "tools_limit", label: "Search results", note: says("Number of tools if the agent sets no limit.") },
      { key: "tools_detail", label: "Detail of search results", note: says("Compact: one line per tool, about a third of the tokens."), options: { auto: "Full schema of the best three", full: "Full schema", compact: "Compact" } },
    ],
  },
  {
    title: "Activity log",
    rows: [
      { key: "activity_retention_days", label: "Keep records for", unit: "days", note: (v) => `Or ${figure(v("activity_max_records"))} records, or ${figure(v("activity_max_size_mb"))} MB, whichever comes first.` },
      { key: "activity_durability", label: "Records survive", note: says("To survive a power loss, each call waits until its record is on the disk."), options: { process: "A process crash", power: "A power loss" } },
    ],
  },
];

const main = new Set(groups.flatMap((g) => g.rows.map((r) => r.key)));

/** Returns the settings without a label. */
export const others = (all: readonly Setting[]) => all.filter((s) => !main.has(s.key));

/** Returns the value of a setting in a draft; validation is the last one of the draft. */
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

/** Returns the draft with a setting changed; undefined if no changes are left. */
export function withSetting(file: Config, draft: Draft | undefined, s: Setting, value: unknown): Draft | undefined {
  const d = draft ?? { base: file, set: {} };
  const { [s.key]: _, ...set } = d.set;
  const asBefore = d.text === undefined && (value === null ? !s.set : same(value, s.value));
  if (!asBefore) return { ...d, set: { ...set, [s.key]: value } };
  return Object.keys(set).length > 0 ? { ...d, set } : undefined;
}

/** Returns the draft with another text; applied reports that the text contains the changed settings. */
export function withText(file: Config, draft: Draft | undefined, text: string, applied: boolean): Draft | undefined {
  const base = draft?.base ?? file;
  const set = applied ? {} : (draft?.set ?? {});
  return text === base.text && Object.keys(set).length === 0 ? undefined : { base, text, set };
}

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/** Parses typed text. An invalid number is kept as text, so that MCPProxy reports the error. */
export function typed(type: Setting["type"], text: string): unknown {
  if (type === "list") return text.split("\n");
  return type === "integer" && /^\s*-?\d{1,15}\s*$/.test(text) ? Number(text) : type === "boolean" ? text === "true" : text;
}

/** Returns a value as text to edit. */
export function shown(value: unknown): string {
  return Array.isArray(value) ? value.join("\n") : typeof value === "string" ? value : JSON.stringify(value);
}

/** Returns a value as text for a sentence; "none" if it is empty. */
export function said(value: unknown): string {
  return (Array.isArray(value) ? value.join(", ") : typeof value === "boolean" ? (value ? "on" : "off") : shown(value)) || "none";
}

/** Returns the default, the range and the restart note of a setting. */
export function facts(s: Setting): string {
  return [`Default: ${said(s.default)}.`, s.range ? `${s.range.charAt(0).toUpperCase() + s.range.slice(1)}.` : "", s.restart ? "Requires a restart." : ""].filter(Boolean).join(" ");
}

export interface Piece { text: string; code: boolean }

/** Splits a text at `code`; links become plain text. */
export function pieces(markdown: string): Piece[] {
  const plain = markdown.replace(/\[([^\]]*)\]\([^)]*\)/g, "$1");
  return plain.split("`").map((text, i) => ({ text, code: i % 2 === 1 })).filter((p) => p.text);
}

/** Returns the heading of the page. */
export function heading(c: Config, now: Date): string {
  const n = c.mistakes?.length ?? 0;
  if (c.error) return `The saved file has ${n > 1 ? `${number(n)} errors` : "an error"}`;
  return `Active since ${moment(c.in_force_since, now)}`;
}

/** Returns "14:20", of another day "8 Nov, 14:20". */
export function moment(at: string, now: Date): string {
  const t = new Date(at);
  return (t.toDateString() === now.toDateString() ? "" : date(t, now) + ", ") + clock(t);
}

/** Returns the sentences below the heading. */
export function lead(c: Config, draft: Draft | undefined, changes: number, now: Date): string {
  const out = [c.error ? `The configuration from ${moment(c.in_force_since, now)} stays active.` : "The active configuration is the saved file."];
  if (c.unconfirmed.length > 0 || c.unconfirmed_why) out[0] = unconfirmed(c);
  if (draft) out.push(changes === 0 ? "You have unsaved changes." : `${count(changes, "unsaved change")}.`);
  if (c.needs_restart.length > 0) out.push(`Restart MCPProxy to apply ${c.needs_restart.join(", ")}.`);
  return out.join(" ");
}

// The changes that need confirmation.
function unconfirmed(c: Config): string {
  const keys = c.unconfirmed.map((d) => d.key);
  const shown = keys.length > 3 ? `${keys.slice(0, 3).join(", ")} and ${number(keys.length - 3)} more` : keys.join(", ");
  const what = keys.length > 0 ? `Changes that grant more access need confirmation: ${shown}.` : "";
  const why = c.unconfirmed_why ? `Changes that grant more access are not applied: ${c.unconfirmed_why}.` : "";
  return [why, what, "Confirm here or run mcpproxy config confirm."].filter(Boolean).join(" ");
}

/** Returns the number of changes in a draft. */
export function changeCount(draft: Draft | undefined, validation: Validation | undefined): number {
  if (!draft) return 0;
  return draft.text === undefined ? Object.keys(draft.set).length : (validation?.changes.length ?? 0);
}

/** Returns the effect of saving. */
export function effect(v: Validation): string {
  if (v.needs_restart.length > 0) return `Restart needed for ${v.needs_restart.join(", ")}`;
  const servers = new Set(v.changes.filter((c) => c.key.startsWith("mcpServers.")).map((c) => c.key.split(".")[1]));
  return servers.size > 0 ? `Applies immediately to ${count(servers.size, "server")}` : "Applies immediately";
}

/** Returns the position of an error. */
export function place(m: Mistake): string {
  return [m.line > 0 ? `Line ${number(m.line)}` : "", m.key ?? ""].filter(Boolean).join(", ");
}

/** Returns the message of an error, with its hint. */
export const wrong = (m: Mistake) => m.message + (m.hint ? ` (${m.hint})` : "");

/** Reports whether a text has masked secrets. */
export const hasSecrets = (text: string) => text.includes("***masked:");

const checkPages: Record<string, { page: PageName; label: string; params?: Record<string, string> }> = {
  server: { page: "servers", label: "View servers" }, login: { page: "servers", label: "Log in" }, approvals: { page: "approvals", label: "Review" }, approvals_lost: { page: "approvals", label: "Review" },
  log: { page: "activity", label: "View activity" }, config_file: { page: "settings", label: "Fix file", params: { view: "file" } }, config_unconfirmed: { page: "settings", label: "View file", params: { view: "file" } },
  config_history: { page: "settings", label: "View history", params: { view: "history" } },
};

/** Returns the page that fixes the problem of a check; undefined if there is none. It opens the server that the title names. */
export function checkPage(c: { code: string; state: string; title: string }, servers: readonly string[]): { page: PageName; label: string; params: Record<string, string> } | undefined {
  const to = c.state === "ok" ? undefined : own(checkPages, c.code);
  if (!to) return undefined;
  const name = to.page === "servers" ? servers.filter((s) => c.title.split(/[\s:,'"]+/).includes(s)).sort((a, b) => b.length - a.length)[0] : undefined;
  return { page: to.page, label: name ? `View ${name}` : to.label, params: { ...to.params, ...(name ? { id: name } : {}) } };
}
