// What the list of servers says: groups, sentences, causes. Pure.

import type { Server, ServerDetail } from "../../api/types";
import { spelled } from "../../lib/format";
import { sorted, type Order, type Value } from "../../lib/order";
import { commandLine } from "../../lib/paste";
import { serverState } from "../../ui/marks";

export const groupNames = ["need", "work", "off"] as const;
export type GroupName = (typeof groupNames)[number];
export const groupTitles: Record<GroupName, string> = { need: "Need you", work: "Work", off: "Off" };

/** A row of the table: a server, or the head of a group. */
export type Row = { group: GroupName; count: number; folded: boolean } | { server: Server };

/** Returns where a server belongs. One that is tried again after a failure still needs a person. */
export function groupOf(s: Server): GroupName {
  if (!s.enabled) return "off";
  return s.quarantined || needsLogin(s) || broken(s) ? "need" : "work";
}

export function needsLogin(s: Server): boolean {
  return s.enabled && !s.quarantined && (s.state === "needs_login" || !!s.needs_login);
}

/** Reports whether it waits for a secret that is not set. */
export function needsSecret(s: Server): boolean {
  return s.enabled && !s.quarantined && s.state === "needs_secret";
}

/** Reports whether the last try has failed and none has gone well since, or it cannot be fetched now. */
export function broken(s: Server): boolean {
  return s.enabled && !s.quarantined && !needsLogin(s) && (s.state === "failed" || s.state === "needs_secret" || s.state === "needs_variable" || (s.state === "connecting" && (!!s.trouble || !!s.last_error)));
}

/** What the servers of a group are sorted by, by column. */
export const orders: Readonly<Record<string, (s: Server) => Value>> = {
  name: (s) => s.name, state: (s) => serverState(s).word, how: commandLine, tools: (s) => tools(s)?.total, calls: (s) => s.calls?.calls ?? 0,
  p95: (s) => (s.calls?.calls ? s.calls.p95_ms : undefined), trust: (s) => s.trust || undefined,
};

/** Returns the rows of all servers whose name contains filter, those that need a person first, each group in the order. */
export function rows(all: readonly Server[], filter: string, folded: readonly GroupName[], order: Order = ""): Row[] {
  const want = filter.trim().toLowerCase();
  const by: Record<GroupName, Server[]> = { need: [], work: [], off: [] };
  for (const s of sorted(all, order, orders)) if (s.name.toLowerCase().includes(want)) by[groupOf(s)].push(s);
  return groupNames.flatMap((group): Row[] => {
    const list = by[group];
    if (list.length === 0) return [];
    // What is searched for is shown.
    const hide = folded.includes(group) && !want;
    return [{ group, count: list.length, folded: hide }, ...(hide ? [] : list.map((server) => ({ server })))];
  });
}

/** Returns the sentence that heads the page: "Three servers need you, ten work". */
export function sentence(all: readonly Server[]): string {
  const n = { need: 0, work: 0, off: 0 };
  for (const s of all) n[groupOf(s)]++;
  const small = (count: number) => spelled(count).toLowerCase();
  if (all.length === 0) return "No server yet";
  if (n.need > 0) return `${spelled(n.need)} ${n.need === 1 ? "server needs" : "servers need"} you, ${n.work === 0 ? "none works" : `${small(n.work)} ${n.work === 1 ? "works" : "work"}`}`;
  if (n.work > 0) return `${spelled(n.work)} ${n.work === 1 ? "server works" : "servers work"}`;
  return `${n.off === 1 ? "The one server is" : `All ${small(n.off)} servers are`} off`;
}

/** Returns how many tools a server has and how many of them can be called; undefined when nobody has listed them yet. */
export function tools(s: Server): { callable: number; total: number } | undefined {
  if (s.tool_count === 0 && s.state !== "ready" && !(s.state === "idle" && !s.hint)) return undefined;
  return { callable: s.tools ? (s.tools.callable ?? 0) : s.tool_count, total: s.tool_count };
}

/** What stood for a secret where a launch is shown; a launch with one in it must not be written back. */
const mask = /\[masked [a-z0-9-]+ [0-9a-f]{8}\]|\*\*\*masked[^*]*\*\*\*|\*\*\*/;

/** Returns the mask in a text, or "". */
export function maskIn(text: string): string {
  return mask.exec(text)?.[0] ?? "";
}

export interface Stretch { state: string; from: number; to: number }

/** Returns the states of the last 24 hours as parts of them, 0 to 1; before the first turn nothing is known. */
export function stretches(turns: ServerDetail["availability"], now: Date): Stretch[] {
  const day = 86_400_000;
  const begin = now.getTime() - day;
  const all = (turns ?? []).map((t) => ({ state: t.state, at: Math.max(0, (Date.parse(t.at) - begin) / day) }));
  return all
    .map(({ state, at }, i) => ({ state, from: Math.min(1, at), to: Math.min(1, all[i + 1]?.at ?? 1) }))
    .filter((s) => s.to > s.from);
}

/** Returns for each state how much of the known time it took, 0 to 1, the longest first. */
export function shares(all: readonly Stretch[]): { state: string; share: number }[] {
  const known = all.reduce((n, s) => n + s.to - s.from, 0);
  const sum = new Map<string, number>();
  for (const s of all) sum.set(s.state, (sum.get(s.state) ?? 0) + (s.to - s.from) / known);
  return [...sum].map(([state, share]) => ({ state, share })).sort((a, b) => b.share - a.share);
}
