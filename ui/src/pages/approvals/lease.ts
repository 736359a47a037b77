// A lease: calls that run without asking for a limited time.

import type { Lane, PendingCall } from "../../api/types";
import { count } from "../../lib/format";

export interface Lease {
  server: string;
  /** A tool, or "" for all tools of the server. */
  tools: string;
  lane: Lane;
  /** The name of a token, or "" for any client. */
  client: string;
  calls: number;
  life: string;
}

/** The durations of a lease, and their labels. */
export const lives: readonly (readonly [string, string])[] = [["5m", "5 minutes"], ["15m", "15 minutes"], ["1h", "1 hour"], ["8h", "8 hours"], ["24h", "24 hours"]];

export const mostCalls = 10_000;

/** Returns the default lease for a call: for its tool, and for its token if it has one. */
export function offered(c: PendingCall): Lease {
  return { server: c.server, tools: c.tool, lane: c.lane, client: tokenOf(c), calls: 5, life: "15m" };
}

/** Returns the name of the token that the call came with, or "". */
export function tokenOf(c: PendingCall): string {
  return c.actor.startsWith("agent:") ? c.actor.slice("agent:".length) : "";
}

const all: readonly Lane[] = ["read", "write", "destructive"];

/** Returns the lanes that cover the call: its own and the stricter ones. */
export function lanesFor(c: PendingCall): readonly Lane[] {
  return all.slice(all.indexOf(c.lane));
}

const reach: Record<Lane, string> = { read: ", read lane only", write: ", read and write lanes", destructive: "" };

/** Returns what the lease covers, as a sentence. */
export function covers(l: Lease): string {
  const of = l.tools ? `${l.server}:${l.tools}` : `any tool on ${l.server}`;
  const life = lives.find(([value]) => value === l.life)?.[1] ?? l.life;
  return `${count(l.calls, "more call")} to ${of} with any arguments${reach[l.lane]}, from ${l.client ? `the token ${l.client}` : "any client"}, within ${life}.`;
}

/** Returns the body for POST /leases. */
export function bodyOf(l: Lease): Record<string, unknown> {
  return { server: l.server, lane: l.lane, for: l.life, calls: l.calls, ...(l.tools && { tools: l.tools }), ...(l.client && { client: l.client }) };
}
