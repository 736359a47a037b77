// A lease: calls that are not asked about for a while.

import type { Lane, PendingCall } from "../../api/types";
import { count } from "../../lib/format";

export interface Lease {
  server: string;
  /** A tool, or "" for all of the server. */
  tools: string;
  lane: Lane;
  /** The name of a token, or "" for everybody. */
  client: string;
  calls: number;
  life: string;
}

/** How long one can run, and in words. */
export const lives: readonly (readonly [string, string])[] = [["5m", "5 minutes"], ["15m", "15 minutes"], ["1h", "an hour"], ["8h", "8 hours"], ["24h", "a day"]];

export const mostCalls = 10_000;

/** Returns the lease that is offered for a call: for its tool alone, and for its token where it came with one. */
export function offered(c: PendingCall): Lease {
  return { server: c.server, tools: c.tool, lane: c.lane, client: tokenOf(c), calls: 5, life: "15m" };
}

/** Returns the name of the token that the call came with, or "". */
export function tokenOf(c: PendingCall): string {
  return c.actor.startsWith("agent:") ? c.actor.slice("agent:".length) : "";
}

const all: readonly Lane[] = ["read", "write", "destructive"];

/** Returns the lanes that cover the call: its own and what is worse. */
export function lanesFor(c: PendingCall): readonly Lane[] {
  return all.slice(all.indexOf(c.lane));
}

const reach: Record<Lane, string> = { read: ", if they only read", write: ", if they read or write", destructive: "" };

/** Returns what the lease covers, as a sentence. */
export function covers(l: Lease): string {
  const of = l.tools ? `${l.server}:${l.tools}` : `any tool of ${l.server}`;
  const life = lives.find(([value]) => value === l.life)?.[1] ?? l.life;
  return `${count(l.calls, "more call")} of ${of}, whatever the arguments${reach[l.lane]}, by ${l.client ? `the token ${l.client}` : "any client"}, within ${life}.`;
}

/** Returns the body for POST /leases. */
export function bodyOf(l: Lease): Record<string, unknown> {
  return { server: l.server, lane: l.lane, for: l.life, calls: l.calls, ...(l.tools && { tools: l.tools }), ...(l.client && { client: l.client }) };
}
