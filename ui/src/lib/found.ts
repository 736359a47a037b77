// Servers found in client files: which of them to import. Pure.

import type { FoundServer, Importable } from "../api/types";
import { count } from "./format";
import { commandLine } from "./paste";

/** A found server. why: a reason not to import it; again: a duplicate of an earlier one; have: it was already added. */
export interface Mark { server: FoundServer; why: string; again: boolean; have: boolean }

/** Returns the found servers, each with a reason not to import it: already added, pasted, or a duplicate of an earlier one with the same name. */
export function marks(found: readonly FoundServer[], pasted: readonly string[]): Mark[] {
  const seen = new Set<string>();
  return found.filter((f) => !f.ours).map((server) => {
    const again = seen.has(server.name);
    seen.add(server.name);
    if (server.have) return { server, why: "already added", again, have: true };
    return { server, why: pasted.includes(commandLine(server.launch)) ? "already pasted" : "", again, have: false };
  });
}

/** Groups the marks by file, in their order. */
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
