// Selected rows, and the actions on them.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { each } from "../data/each";
import { number } from "../lib/format";
import { Button } from "./button";
import type { Picking } from "./table";
import { toast } from "./toast";

export interface Selection<T> extends Picking<T> { rows: readonly T[]; clear: () => void }

/** Returns the selection among the rows; removed rows are not selected. key and name must be stable between renders. */
export function useSelection<T>(there: readonly T[], key: (row: T) => string, name: (row: T) => string | undefined): Selection<T> {
  const [ticked, set] = useState<ReadonlySet<string>>(new Set());
  const may = there.filter((r) => name(r) !== undefined);
  const rows = may.filter((r) => ticked.has(key(r)));
  const picked = new Set(rows.map(key));
  return {
    rows, picked, name, all: may.length > 0 && rows.length === may.length,
    pick: (row) => set((s) => new Set(s.has(key(row)) ? [...s].filter((k) => k !== key(row)) : [...s, key(row)])),
    pickAll: (on) => set(new Set(on ? may.map(key) : [])),
    clear: () => set(new Set()),
  };
}

/** The number of selected rows and the actions on them; nothing if none is selected. */
export function Selected({ count, note, onClear, children }: { count: number; note?: string | undefined; onClear: () => void; children: ComponentChildren }) {
  if (count === 0) return null;
  return (
    <div class="selected" role="group" aria-label="Selection">
      <span role="status"><b>{number(count)} selected</b>{note && <span class="dim"> {note}</span>}</span>
      {children}
      <Button kind="quiet" small onClick={onClear}>Clear</Button>
    </div>
  );
}

/** Runs an action on each item, shows a toast with Undo, and returns the successful items. atOnce: how many at a time. */
export async function doAll<T>(all: readonly T[], act: (one: T) => Promise<unknown>, said: (n: number) => string, back?: (done: readonly T[]) => Promise<unknown>, atOnce = 4): Promise<T[]> {
  const { done, problems } = await each(all, act, atOnce);
  const left = problems.length ? ` ${number(problems.length)} failed: ${problems[0]}` : "";
  toast({ text: said(done.length) + left, ...(back && done.length ? { undo: () => back(done) } : {}) });
  return done;
}
