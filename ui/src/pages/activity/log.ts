// The rows of the page: a frozen list in pages of 500, and the newer records before it.

import { useEffect, useMemo, useReducer, useRef } from "preact/hooks";
import { api, OfflineError, type Params } from "../../api/client";
import type { ActivityList, ActivityRecord, EventRecord } from "../../api/types";
import { paused, useEvents } from "../../data/live";
import { PageCache, type Rows } from "../../data/window";
import type { Range } from "../../lib/range";
import { params as times } from "../../lib/range";
import { announce } from "../../ui/announce";
import { params, type Filters } from "./filters";
import { after, maxHead, newestFirst, nothing, now, settle, take, type Told } from "./live";
import { ofRecord, type Row } from "./row";

/** One frozen list and the newer records. */
interface List { cache: PageCache<Row>; told: Told; newest: string; key: string; gone: AbortController }

export interface Log {
  rows: Rows<Row>;
  /** The number of new records that are not shown yet. */
  newer: number;
  /** Shows them. */
  show: () => void;
  /** The filters and range of the rows; it follows the URL once the rows have loaded. */
  key: string;
  /** Increases with each matching change of the log. */
  turn: number;
}

/** Returns the records that match the filters and the range. hold keeps new records back, while the user reads further down. */
export function useLog(filters: Filters, range: Range, hold: boolean): Log {
  const key = JSON.stringify([filters, range]);
  const [turn, changed] = useReducer((n: number, _: void) => n + 1, 0);
  const [again, reload] = useReducer((n: number, _: void) => n + 1, 0);
  const shown = useRef<List | undefined>(undefined);
  const next = useRef<List | undefined>(undefined);
  const head = useRef<Row[]>([]);
  const latest = useRef({ filters, range, hold });
  latest.current = { filters, range, hold };

  useEffect(() => {
    const list: List = { told: nothing(), newest: "", key, cache: undefined as never, gone: new AbortController() };
    const query = { ...params(filters), ...times(range, new Date()) };
    list.cache = new PageCache<Row>(pages(query, list, () => changed()), () => {
      // Offline, the shown rows stay; after reconnecting, "reset" reloads.
      if (next.current === list && list.cache.error instanceof OfflineError && shown.current) next.current = undefined;
      if (next.current === list) {
        shown.current = list;
        next.current = undefined;
        settle(list.told, list.newest);
        head.current = newestFirst(list.told);
      }
      changed();
    });
    next.current = list;
    list.cache.want(0, 1);
    return () => {
      list.gone.abort();
      list.cache.stop();
    };
  }, [key, again]);

  const refresh = useRef(0);
  useEffect(() => () => clearTimeout(refresh.current), []);
  useEvents((batch) => {
    if (batch.some((e) => e.name === "reset")) return reload();
    if (latest.current.range.until) return; // new records are after the range
    const events = batch.flatMap((e) => (e.name === "activity" ? [e.record] : []));
    if (events.length === 0) return;
    // Events have no texts to search, so the log is queried.
    if (latest.current.filters.q) return void (refresh.current ||= window.setTimeout(() => ((refresh.current = 0), look()), 1000));
    if (next.current) take(next.current.told, events, latest.current.filters, undefined);
    const list = shown.current;
    if (!list || !take(list.told, events, latest.current.filters, list.newest)) return;
    for (const e of events) if (list.told.added.has(e.id) && !e.tool_name) void complete(list, e, arrived);
    arrived();
  });
  const arrived = () => {
    const list = shown.current;
    if (!list) return;
    if (list.told.added.size > maxHead && !latest.current.hold && !paused.peek()) return reload();
    const before = head.current.length;
    if (!latest.current.hold && !paused.peek()) head.current = newestFirst(list.told);
    else head.current = head.current.map((r) => list.told.added.get(r.id) ?? r); // shown records are updated in place
    const more = list.told.added.size - before;
    if (more > 0) announce(more === 1 ? "1 new record" : `${more} new records`);
    changed();
  };
  // With a search text, the newer records are queried.
  const look = async () => {
    const list = shown.current;
    if (!list) return;
    const found = await api.get<ActivityList>("/activity", { ...params(latest.current.filters), ...(list.newest ? { start_time: list.cache.row(0)?.at } : times(latest.current.range, new Date())), limit: 500 }).catch(() => undefined);
    for (const r of found?.activities ?? []) if (r.id > list.newest) list.told.added.set(r.id, ofRecord(r));
    if (found && shown.current === list) arrived();
  };

  const show = () => {
    const list = shown.current;
    if (!list) return;
    if (list.told.added.size > maxHead) reload();
    else head.current = newestFirst(list.told);
    changed();
  };
  useEffect(() => {
    if (!hold && !paused.value && (shown.current?.told.added.size ?? 0) > head.current.length) show();
  }, [hold, paused.value]);

  const list = shown.current;
  const rows = useMemo<Rows<Row>>(() => {
    const front = head.current;
    return {
      total: (list?.cache.total ?? 0) + front.length,
      known: list?.cache.known ?? false,
      error: list?.cache.error,
      row: (i) => (i < front.length ? front[i] : ended(list, list?.cache.row(i - front.length))),
      want: (first, last) => list && want(list, first - front.length, last - front.length),
      reload: () => reload(),
    };
  }, [turn, list]);
  return { rows, newer: list ? Math.max(0, list.told.added.size - head.current.length) : 0, show, key: list?.key ?? "", turn };
}

const ahead = 150; // rows
let wanting = 0;

// Loads the rows in view and some more. While the user drags the scroll bar, nothing is loaded.
function want(list: List, first: number, last: number): void {
  clearTimeout(wanting);
  const end = Math.max(1, Math.min(last + ahead, list.cache.total));
  const ask = () => list.cache.want(Math.max(0, first - ahead), end);
  if (list.cache.row(Math.max(0, first)) && list.cache.row(Math.min(last, end) - 1)) ask();
  else wanting = window.setTimeout(ask, 40);
}

// The same object while nothing changes, so that its row is not rendered again.
const finished = new WeakMap<Row, Row>();
function ended(list: List | undefined, row: Row | undefined): Row | undefined {
  if (!list || !row || row.status !== "pending") return row;
  const is = finished.get(row) ?? now(row, list.told);
  if (is !== row) finished.set(row, is);
  return is;
}

// The rows in view come first; the rest of the first page follows.
const firstLook = 60;
const drawTime = 100; // ms

// Pages by offset, or by the cursor of the previous page if known, which is faster far down.
function pages(query: Params, list: List, more: () => void) {
  const cursors = new Map<number, string>();
  let end = query.end_time;
  const ask = async (offset: number, limit: number, signal: AbortSignal) => {
    const cursor = cursors.get(offset);
    const answer = await api.get<ActivityList>("/activity", { ...query, end_time: end, ...(cursor ? { cursor } : { offset: offset || undefined }), limit }, signal);
    // A cursor is the position of a record, so it does not matter that the first page had no end time.
    if (answer.next_cursor) cursors.set(offset + answer.activities.length, answer.next_cursor);
    return answer;
  };
  return async (offset: number, limit: number, signal: AbortSignal) => {
    const answer = await ask(offset, offset === 0 ? firstLook : limit, signal);
    const rows = answer.activities.map(ofRecord);
    const first = answer.activities[0];
    if (offset === 0 && first) {
      list.newest = first.id;
      end ??= after(first.timestamp);
      if (answer.total > rows.length) setTimeout(() => void ask(rows.length, limit - rows.length, list.gone.signal).then((a) => (rows.push(...a.activities.map(ofRecord)), more()), () => {}), drawTime);
    }
    return { rows, total: answer.total };
  };
}

// Events of server and configuration changes have no details; the record has them.
let asked = 0;
async function complete(list: List, e: EventRecord, done: () => void): Promise<void> {
  if (asked > 20) return;
  asked++;
  try {
    const row = ofRecord(await api.get<ActivityRecord>(`/activity/${e.id}`));
    if (list.told.added.has(e.id)) list.told.added.set(e.id, row);
    done();
  } catch {
    // The row stays without its detail.
  } finally {
    asked--;
  }
}
