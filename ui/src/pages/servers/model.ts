// The list of servers: groups, headings, tool counts, availability. Pure.

import type { Server, ServerDetail } from "../../api/types";
import { count, number } from "../../lib/format";
import { sorted, type Order, type Value } from "../../lib/order";
import { commandLine } from "../../lib/paste";
import { serverState } from "../../ui/marks";

export const groupNames = ["need", "work", "off"] as const;
export type GroupName = (typeof groupNames)[number];
export const groupTitles: Record<GroupName, string> = { need: "Needs attention", work: "Running", off: "Disabled" };

/** A row of the table: a server, or the head of a group. */
export type Row = { group: GroupName; count: number; folded: boolean } | { server: Server };

/** Returns the group of a server. One that retries after a failure still needs attention. */
export function groupOf(s: Server): GroupName {
  if (!s.enabled) return "off";
  return s.quarantined || needsLogin(s) || broken(s) ? "need" : "work";
}

export function needsLogin(s: Server): boolean {
  return s.enabled && !s.quarantined && (s.state === "needs_login" || !!s.needs_login);
}

/** Reports whether it needs a secret that is not set. */
export function needsSecret(s: Server): boolean {
  return s.enabled && !s.quarantined && s.state === "needs_secret";
}

/** Reports whether the last start failed, or its package cannot be downloaded now. */
export function broken(s: Server): boolean {
  return s.enabled && !s.quarantined && !needsLogin(s) && (s.state === "failed" || s.state === "needs_secret" || s.state === "needs_variable" || (s.state === "connecting" && (!!s.trouble || !!s.last_error)));
}

/** The sort value of a server, by column. */
export const orders: Readonly<Record<string, (s: Server) => Value>> = {
  name: (s) => s.name, state: (s) => serverState(s).word, how: commandLine, tools: (s) => tools(s)?.total, calls: (s) => s.calls?.calls ?? 0,
  p95: (s) => (s.calls?.calls ? s.calls.p95_ms : undefined), trust: (s) => s.trust || undefined,
};

/** Returns the rows of the servers whose name contains filter, those that need attention first, each group in the given order. */
export function rows(all: readonly Server[], filter: string, folded: readonly GroupName[], order: Order = ""): Row[] {
  const want = filter.trim().toLowerCase();
  const by: Record<GroupName, Server[]> = { need: [], work: [], off: [] };
  for (const s of sorted(all, order, orders)) if (s.name.toLowerCase().includes(want)) by[groupOf(s)].push(s);
  return groupNames.flatMap((group): Row[] => {
    const list = by[group];
    if (list.length === 0) return [];
    // A search shows folded groups.
    const hide = folded.includes(group) && !want;
    return [{ group, count: list.length, folded: hide }, ...(hide ? [] : list.map((server) => ({ server })))];
  });
}

/** Returns the heading of the page: "3 servers need attention, 10 running". */
export function sentence(all: readonly Server[]): string {
  const n = { need: 0, work: 0, off: 0 };
  for (const s of all) n[groupOf(s)]++;
  if (all.length === 0) return "No servers yet";
  if (n.need > 0) return `${count(n.need, "server")} ${n.need === 1 ? "needs" : "need"} attention, ${n.work === 0 ? "none" : number(n.work)} running`;
  if (n.work > 0) return `${count(n.work, "server")} running`;
  return n.off === 1 ? "The server is disabled" : `All ${number(n.off)} servers are disabled`;
}

/** Returns the number of tools of a server and of its callable tools; undefined if they were never listed. */
export function tools(s: Server): { callable: number; total: number } | undefined {
  if (s.tool_count === 0 && s.state !== "ready" && !(s.state === "idle" && !s.hint)) return undefined;
  return { callable: s.tools ? (s.tools.callable ?? 0) : s.tool_count, total: s.tool_count };
}

/** The placeholders of masked secrets; a launch that contains one must not be saved. */
const mask = /\[masked [a-z0-9-]+ [0-9a-f]{8}\]|\*\*\*masked[^*]*\*\*\*|\*\*\*/;

/** Returns the mask in a text, or "". */
export function maskIn(text: string): string {
  return mask.exec(text)?.[0] ?? "";
}

export interface Stretch { state: string; from: number; to: number }

/** Returns the states of the last 24 hours as fractions, 0 to 1; the time before the first change is unknown. */
export function stretches(turns: ServerDetail["availability"], now: Date): Stretch[] {
  const day = 86_400_000;
  const begin = now.getTime() - day;
  const all = (turns ?? []).map((t) => ({ state: t.state, at: Math.max(0, (Date.parse(t.at) - begin) / day) }));
  return all
    .map(({ state, at }, i) => ({ state, from: Math.min(1, at), to: Math.min(1, all[i + 1]?.at ?? 1) }))
    .filter((s) => s.to > s.from);
}

/** Returns the share of each state in the known time, 0 to 1, the longest first. */
export function shares(all: readonly Stretch[]): { state: string; share: number }[] {
  const known = all.reduce((n, s) => n + s.to - s.from, 0);
  const sum = new Map<string, number>();
  for (const s of all) sum.set(s.state, (sum.get(s.state) ?? 0) + (s.to - s.from) / known);
  return [...sum].map(([state, share]) => ({ state, share })).sort((a, b) => b.share - a.share);
}
