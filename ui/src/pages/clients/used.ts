// Clients from their sessions and from their configuration files.

import type { Client, SessionList } from "../../api/types";
import { clientName, clientOf, standing } from "../../lib/clients";
import { count } from "../../lib/format";

export type Session = SessionList["sessions"][number];
export interface ClientUse { name: string; raw: string; versions: string[]; sessions: number; calls: number; refused: number; failed: number; last: string }

/** Returns the clients of agents, the last seen first. REST, the command line and this page are not clients. */
export function clientsOf(sessions: readonly Session[], known: readonly Client[]): ClientUse[] {
  const all = new Map<string, ClientUse>();
  for (const s of sessions) {
    if (s.actor !== "agent" && !s.actor?.startsWith("agent:")) continue;
    if (s.source !== "mcp") continue;
    const raw = s.client_name ?? "";
    let c = all.get(raw);
    if (!c) all.set(raw, (c = { raw, name: raw ? clientName(raw, known) : "Unnamed client", versions: [], sessions: 0, calls: 0, refused: 0, failed: 0, last: s.last }));
    c.sessions++;
    c.calls += s.calls;
    c.refused += s.refused;
    c.failed += s.failed;
    if (s.client_version && !c.versions.includes(s.client_version)) c.versions.push(s.client_version);
    if (Date.parse(s.last) > Date.parse(c.last)) c.last = s.last;
  }
  return [...all.values()].sort((a, b) => Date.parse(b.last) - Date.parse(a.last));
}

/** A row of the page: a known client, a client with sessions, or both. */
export interface Row { id: string; name: string; client?: Client; use?: ClientUse }

/** Returns the rows: connected clients, other clients with sessions, installed clients; elsewhere are the known ones not on this machine. */
export function rowsOf(known: readonly Client[], uses: readonly ClientUse[]): { rows: Row[]; elsewhere: Client[] } {
  const left = [...uses];
  const take = (c: Client) => {
    const i = left.findIndex((u) => u.raw && clientOf(u.raw, known)?.id === c.id);
    return i < 0 ? undefined : left.splice(i, 1)[0];
  };
  const all = known.map((client): Row => ({ id: client.id, name: client.name, client, use: take(client) }));
  const there = (r: Row) => standing(r.client!) !== "not";
  return {
    rows: [...all.filter(there), ...all.filter((r) => !there(r) && r.use), ...left.map((use): Row => ({ id: "", name: use.name, use })), ...all.filter((r) => !there(r) && !r.use && r.client!.found)],
    elsewhere: all.filter((r) => !there(r) && !r.use && !r.client!.found).map((r) => r.client!),
  };
}

/** Returns the heading of the page. more: there are sessions that were not counted. */
export function heading(clients: number, more: boolean): string {
  if (clients === 0) return more ? "No clients in the newest sessions" : "No clients in the last 24 hours";
  return `${more ? "At least " : ""}${count(clients, "client")} in the last 24 hours`;
}

/** Returns the client of a session: "Claude Code 2.4.1". */
export function sessionName(s: Session, known: readonly Client[]): string {
  return [s.client_name ? clientName(s.client_name, known) : (s.source ?? "unnamed"), s.client_version].filter(Boolean).join(" ");
}

/** Returns the calls of a session: "9 calls, 1 refused". */
export function went(s: Pick<Session, "calls" | "refused" | "failed">): string {
  return [count(s.calls, "call"), s.refused > 0 && `${count(s.refused, "refused", "refused")}`, s.failed > 0 && `${count(s.failed, "failed", "failed")}`].filter(Boolean).join(", ");
}
