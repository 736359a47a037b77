// The results of the palette: local lists immediately, tools after 80 ms.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import type { Lane, SearchAnswer, Server, Tool } from "../api/types";
import type { Action } from "../keys";
import { ranked } from "../lib/ranked";
import { go, href } from "../router";
import type { IconName } from "../ui/icon";
import { serverState } from "../ui/marks";
import { pages } from "./pages";

export interface Entry {
  id: string;
  icon: IconName;
  text: string;
  run: () => void;
  key?: string;
  end?: string;
  tag?: string;
  lane?: Lane;
  tool?: { server: string; tool: string };
}
export interface Group { title: string; entries: Entry[] }

const atMost = 8;

/** Reports whether each word of query is the prefix of a word of text. */
export function fits(text: string, query: string): boolean {
  const have = text.toLowerCase().split(/[^\p{L}\p{N}]+/u);
  return query.toLowerCase().split(/[^\p{L}\p{N}]+/u).filter(Boolean).every((w) => have.some((h) => h.startsWith(w)));
}

/** Returns the results that need no request. */
export function local(query: string, servers: readonly Server[], offered: readonly Action[]): Group[] {
  const groups: Group[] = [
    { title: "Records", entries: record(query) },
    { title: "Pages", entries: pages.filter((p) => fits(p.title, query)).map((p) => ({ id: "page " + p.name, icon: p.icon, text: p.title, key: "g " + p.key, run: () => go(href(p.name)) })) },
    { title: "Servers", entries: query ? servers.filter((s) => fits(s.name, query)).slice(0, atMost).map((s) => ({ id: "server " + s.name, icon: "servers" as const, text: s.name, end: serverState(s).word, run: () => go(href("servers", { id: s.name })) })) : [] },
    { title: "Commands", entries: commands(offered).filter((c) => fits(c.text, query)) },
  ];
  return groups.filter((g) => g.entries.length > 0);
}

// If several actions have the same key, the newest one takes precedence.
function commands(offered: readonly Action[]): Entry[] {
  const seen = new Set<string>();
  return offered.toReversed().filter((a) => a.label && !seen.has(a.key ?? a.label) && seen.add(a.key ?? a.label)).map((a) => ({
    id: "command " + a.label, icon: a.icon ?? "bolt", text: a.label!, run: a.run, ...(a.key ? { key: a.key } : {}),
  }));
}

// Record ids are ULIDs; only full ids can be opened.
function record(query: string): Entry[] {
  const id = query.trim().toUpperCase();
  if (!/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/.test(id)) return [];
  return [{ id: "record " + id, icon: "activity", text: "Record " + id, run: () => go(href("activity", { id })) }];
}

function entry(t: Tool): Entry {
  const lane = t.inferred_operation ?? laneOf(t.call_with);
  return {
    id: "tool " + t.name, icon: "tools", text: t.name, tool: { server: t.server, tool: t.tool }, ...(lane ? { lane } : {}),
    ...(t.status === "pending_approval" ? { tag: "needs review" } : t.status === "blocked" ? { tag: "blocked" } : t.status ? { tag: "locked" } : {}),
    run: () => go(href("tools", { id: t.name })),
  };
}

function laneOf(callWith: string): Lane | undefined {
  return (["read", "write", "destructive"] as const).find((l) => callWith.endsWith(l));
}

/** Returns the matching tools, including locked ones. */
export function useTools(query: string): Entry[] {
  const [found, setFound] = useState<Entry[]>([]);
  const q = query.trim();
  useEffect(() => {
    if (q.length < 2) return setFound([]);
    const abort = new AbortController();
    const timer = setTimeout(() => {
      api.get<SearchAnswer>("/tools/search", { q, limit: atMost, include_disabled: true }, abort.signal).then(
        (a) => setFound(ranked(a).map(entry)),
        () => abort.signal.aborted || setFound([]),
      );
    }, 80);
    return () => (clearTimeout(timer), abort.abort());
  }, [q]);
  return found;
}
