// The filters of records as URL parameters, as REST parameters, and as a predicate for records
// from events. All three mean the same.

import type { ActivityRecord, EventRecord, Lane } from "../../api/types";
import type { Params } from "../../api/client";
import { own } from "../../lib/own";
import { list, text } from "../../lib/query";

export type Status = ActivityRecord["status"];
export type Type = ActivityRecord["type"];

export const lanes = ["read", "write", "destructive"] as const satisfies readonly Lane[];
export const statuses = ["success", "blocked", "error", "interrupted", "pending", "held"] as const satisfies readonly Status[];
export const types = ["tool_call", "policy_decision", "approval", "server_change", "config_change", "presence", "system"] as const satisfies readonly Type[];

/** The parameters of the URL; since and until are the range's. */
export const schema = {
  lane: list<Lane>(lanes), status: list<Status>(statuses), server: list(), tool: list(), client: list(), session: text(), type: list<Type>(types), q: text(), id: text(),
};
export interface Filters { lane: Lane[]; status: Status[]; server: string[]; tool: string[]; client: string[]; session: string; type: Type[]; q: string }

export const none: Filters = { lane: [], status: [], server: [], tool: [], client: [], session: "", type: [], q: "" };

export const statusWords: Record<Status, string> = { success: "ok", blocked: "refused", error: "failed", interrupted: "interrupted", pending: "running", held: "held" };
export const typeWords: Record<Type, string> = { tool_call: "call", policy_decision: "refusal", approval: "approval", server_change: "server change", config_change: "configuration change", presence: "presence", system: "system" };
export const names = { lane: "Lane", status: "Outcome", server: "Server", tool: "Tool", client: "Client", session: "Session", type: "Type", q: "Text" } as const;
export type Key = keyof Filters;
export const keys = Object.keys(names) as Key[];

/** Returns the values of one filter. */
export function valuesOf(f: Filters, key: Key): readonly string[] {
  const v = f[key];
  return typeof v === "string" ? (v ? [v] : []) : v;
}

/** Returns the URL parameter for the values of one filter; a session has a single value. */
export function patch(key: Key, values: readonly string[]): Partial<Filters> {
  return { [key]: key === "session" || key === "q" ? (values.at(-1) ?? "") : [...values] };
}

/** Reports whether no filter is set, apart from the time range. */
export function isEmpty(f: Filters): boolean {
  return keys.every((k) => valuesOf(f, k).length === 0);
}

/** Returns the label of a value. */
export function word(key: Key, value: string): string {
  if (key === "status") return own(statusWords, value) ?? value;
  if (key === "type") return own(typeWords, value) ?? value;
  return value;
}

/** Returns the filters as a sentence: "Lane is destructive, and client is Codex" */
export function sentence(f: Filters): string {
  const parts = keys.filter((k) => valuesOf(f, k).length > 0).map((k) => `${names[k]} ${k === "q" ? "contains" : "is"} ${valuesOf(f, k).map((v) => (k === "q" ? `“${v}”` : word(k, v))).join(" or ")}`);
  return parts.map((p, i) => (i ? p[0]!.toLowerCase() + p.slice(1) : p)).join(", and ");
}

// A tool can include its server; REST takes them separately.
function split(tool: string): { server: string; tool: string } {
  const at = tool.indexOf(":");
  return at < 0 ? { server: "", tool } : { server: tool.slice(0, at), tool: tool.slice(at + 1) };
}

function serversOf(f: Filters): string[] {
  if (f.server.length) return f.server;
  const of = f.tool.map((t) => split(t).server);
  return of.every(Boolean) ? [...new Set(of)] : [];
}

/** Returns the REST parameters. */
export function params(f: Filters): Params {
  return {
    intent_type: f.lane.join(), status: f.status.join(), server: serversOf(f).join(), tool: f.tool.map((t) => split(t).tool), client: f.client, session_id: f.session, type: f.type.join(), q: f.q,
  };
}

/** Reports whether a record from an event matches. Events have no texts to search; use REST for those. */
export function fits(f: Filters, r: EventRecord): boolean {
  const has = (all: readonly string[], v: string | undefined) => all.length === 0 || all.includes(v ?? "");
  return (
    has(f.lane, r.operation_type) && has(f.status, r.status) && has(serversOf(f), r.server_name) && has(f.tool.map((t) => split(t).tool), r.tool_name) &&
    has(f.client, r.client_name) && has(f.session ? [f.session] : [], r.session_id) && has(f.type, r.type)
  );
}
