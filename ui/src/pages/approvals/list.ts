// The items that need review, with all pages of the answer, and without items that were just decided.

import { useEffect, useMemo, useState } from "preact/hooks";
import { api, explain } from "../../api/client";
import type { Waiting } from "../../api/types";
import { useResource } from "../../data/resource";
import { approvals, pending, useApprovals, usePending } from "../../data/shared";
import { isDefinition, itemsOf, type Item } from "./model";

const page = 1000;
const most = 20_000;

// The pages after the first, which the frame requests anyway.
async function rest(first: Waiting, signal: AbortSignal): Promise<Item[]> {
  const out: Item[] = [];
  const total = Math.min(most, Math.max(first.total_tools, first.total_offers));
  for (let offset = Math.max(first.tools.length, first.offers.length); offset < total; offset += page) {
    const w = await api.get<Waiting>("/approvals", { limit: page, offset }, signal);
    out.push(...itemsOf({ ...w, servers: [], forgotten: [] }));
  }
  return out;
}

const trace = (i: Item) => `${i.key}|${isDefinition(i) ? `${i.fingerprint} ${i.reason}` : i.kind === "server" ? i.stage : ""}`;

const reload = () => {
  approvals.reload();
  pending.reload();
};

export function useInbox() {
  const shared = useApprovals();
  const calls = usePending();
  const first = shared.data;
  const more = first !== undefined && (first.total_tools > first.tools.length || first.total_offers > first.offers.length);
  const later = useResource(more ? "rest" : null, (signal) => rest(first!, signal), { turn: shared.at?.getTime() });
  const all = useMemo(() => {
    if (!first || (calls.data === undefined && calls.error === undefined)) return undefined;
    const by = new Map(itemsOf(first, calls.data).map((i) => [i.key, i]));
    for (const i of (more && later.data) || []) if (!by.has(i.key)) by.set(i.key, i);
    return [...by.values()];
  }, [first, calls.data, calls.error, more && later.data]);

  // A decided item is hidden at once, until the list from the server no longer has it.
  const [decided, setDecided] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => {
    if (!all || decided.size === 0) return;
    const there = new Set(all.map(trace));
    const left = [...decided].filter((t) => there.has(t));
    if (left.length < decided.size) setDecided(new Set(left));
  }, [all]);
  const items = useMemo(() => all?.filter((i) => !decided.has(trace(i))), [all, decided]);
  return {
    data: items,
    error: shared.error,
    slow: shared.slow,
    reload,
    warnings: [...(calls.error !== undefined ? [explain(calls.error).message] : []), ...(first?.warnings ?? [])],
    settle: (done: readonly Item[]) => {
      setDecided((d) => new Set([...d, ...done.map(trace)]));
      reload();
    },
    unsettle: (back: readonly Item[]) => {
      const gone = new Set(back.map(trace));
      setDecided((d) => new Set([...d].filter((t) => !gone.has(t))));
      reload();
    },
  };
}
