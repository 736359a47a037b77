// Records that arrive while the list is open. The list is frozen at its newest record;
// newer ones are shown before it or held back. Plain data, so that it can be tested.

import type { EventRecord } from "../../api/types";
import { fits, type Filters } from "./filters";
import { ofEvent, type Row } from "./row";

/** With more newer records than this, the list is reloaded. */
export const maxHead = 2000;
const maxEnds = 5000;

/** The records from events since the list was requested, newest last. */
export interface Told {
  /** Records newer than the list, by id. */
  added: Map<string, Row>;
  /** Records of the list that have ended since. */
  ended: Map<string, Row>;
}

export function nothing(): Told {
  return { added: new Map(), ended: new Map() };
}

/** Adds events. newest is the id of the list's first record; undefined while the list loads: then everything counts as newer, see settle. Reports whether anything changed. */
export function take(told: Told, events: readonly EventRecord[], filters: Filters, newest: string | undefined): boolean {
  let changed = false;
  for (const e of events) {
    const row = ofEvent(e);
    const before = told.added.get(e.id);
    if (newest !== undefined && e.id <= newest) {
      told.ended.set(e.id, row);
      if (told.ended.size > maxEnds) told.ended.delete(told.ended.keys().next().value!);
    } else if (fits(filters, e)) told.added.set(e.id, before ? { ...before, ...row } : row);
    else if (before) told.added.delete(e.id); // it has ended, and its end does not fit
    else continue;
    changed = true;
  }
  return changed;
}

/** Moves the records that the list contains; call it when the first page has loaded. */
export function settle(told: Told, newest: string): void {
  for (const [id, row] of told.added) {
    if (id > newest) continue;
    told.added.delete(id);
    told.ended.set(id, row);
  }
}

/** Returns the added records, newest first. Ids are ULIDs, which sort by time. */
export function newestFirst(told: Told): Row[] {
  return [...told.added.values()].sort((a, b) => (a.id < b.id ? 1 : -1));
}

/** Returns the current state of a row. */
export function now(row: Row, told: Told): Row {
  const end = told.ended.get(row.id);
  return end && row.status === "pending" ? { ...row, status: end.status, ms: end.ms } : row;
}

/** Returns the time one microsecond later: records before it include the one at t. */
export function after(t: string): string {
  const [, head, fraction = ""] = /^(.*?:\d\d)(?:\.(\d+))?(?:Z|\+00:00)$/.exec(t) ?? [];
  if (head === undefined) return new Date(new Date(t).getTime() + 1).toISOString();
  const micros = Number((fraction + "000000").slice(0, 6)) + 1;
  if (micros < 1_000_000) return `${head}.${String(micros).padStart(6, "0")}Z`;
  return new Date(Date.parse(head + "Z") + 1000).toISOString();
}
