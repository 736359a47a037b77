// Clients by what their sessions tell.

import type { SessionList } from "../../api/types";
import { clientName } from "../../lib/connect";
import { count, spelled } from "../../lib/format";

export type Session = SessionList["sessions"][number];
export interface ClientUse { name: string; raw: string; versions: string[]; sessions: number; calls: number; refused: number; failed: number; last: string }

/** Returns the clients of agents, the one seen last first. Who used REST, the command line or this page is no client. */
export function clientsOf(sessions: readonly Session[]): ClientUse[] {
  const all = new Map<string, ClientUse>();
  for (const s of sessions) {
    if (s.actor !== "agent" || s.source !== "mcp") continue;
    const raw = s.client_name ?? "";
    let c = all.get(raw);
    if (!c) all.set(raw, (c = { raw, name: raw ? clientName(raw) : "It has no name", versions: [], sessions: 0, calls: 0, refused: 0, failed: 0, last: s.last }));
    c.sessions++;
    c.calls += s.calls;
    c.refused += s.refused;
    c.failed += s.failed;
    if (s.client_version && !c.versions.includes(s.client_version)) c.versions.push(s.client_version);
    if (Date.parse(s.last) > Date.parse(c.last)) c.last = s.last;
  }
  return [...all.values()].sort((a, b) => Date.parse(b.last) - Date.parse(a.last));
}

/** Returns the sentence that heads the page. more: there are sessions that were not looked at. */
export function heading(clients: number, more: boolean): string {
  if (clients === 0) return more ? "No client among the newest sessions" : "No client used MCPProxy today";
  return `${more ? "At least " + spelled(clients).toLowerCase() : spelled(clients)} ${clients === 1 ? "client" : "clients"} used MCPProxy today`;
}

/** Returns what a client is called in the list of sessions: "Claude Code 2.4.1". */
export function sessionName(s: Session): string {
  return [s.client_name ? clientName(s.client_name) : (s.source ?? "no name"), s.client_version].filter(Boolean).join(" ");
}

/** Returns how a session went: "9 calls, 1 refused". */
export function went(s: Pick<Session, "calls" | "refused" | "failed">): string {
  return [count(s.calls, "call"), s.refused > 0 && `${count(s.refused, "refused", "refused")}`, s.failed > 0 && `${count(s.failed, "failed", "failed")}`].filter(Boolean).join(", ");
}
