// Servers that were found in clients' files: which of them are worth taking over. Pure.

import type { FoundServer, Importable } from "../api/types";
import { count } from "./format";
import { commandLine, takes } from "./paste";

/** A found server, and why it is not ticked by itself. have: it cannot be taken over at all. */
export interface Mark { server: FoundServer; why: string; have: boolean }

/** Returns the found servers with what speaks against each: here already, pasted, or the same as one before it. */
export function marks(found: readonly FoundServer[], pasted: readonly string[]): Mark[] {
  const seen = new Map<string, FoundServer>();
  return found.filter((f) => !f.ours).map((server) => {
    const line = commandLine(server.launch);
    const key = JSON.stringify([line, takes(server.launch)]);
    const same = seen.get(key);
    if (!same) seen.set(key, server);
    if (server.have) return { server, why: "here already", have: true };
    if (pasted.includes(line)) return { server, why: "pasted already", have: false };
    return { server, why: same ? `the same as in ${same.client_name}` : "", have: false };
  });
}

/** Returns the marks by the file in which they stand, in their order. */
export function byFile(all: readonly Mark[]): { name: string; path: string; marks: Mark[] }[] {
  const out: { name: string; path: string; marks: Mark[] }[] = [];
  for (const m of all) {
    const last = out.find((g) => g.path === m.server.path && g.name === m.server.client_name);
    if (last) last.marks.push(m);
    else out.push({ name: m.server.client_name, path: m.server.path, marks: [m] });
  }
  return out;
}

/** Returns "3 clients, 5 servers". */
export function tally(of: Importable): string {
  const found = of.found.filter((f) => !f.ours);
  return `${count(new Set(found.map((f) => f.client)).size, "client")}, ${count(found.length, "server")}`;
}
