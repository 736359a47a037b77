// The rows of the page: a frozen list in pages of 500, with what came since before it.

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

/** One frozen list and what is newer. */
interface List { cache: PageCache<Row>; told: Told; newest: string; key: string; gone: AbortController }

export interface Log {
  rows: Rows<Row>;
  /** How many records are there that are not drawn yet. */
  newer: number;
  /** Draws them. */
  show: () => void;
  /** Which filters and range the rows are of: it follows the URL when the rows are there. */
  key: string;
  /** Counts up with each change of the log that the filters select. */
  turn: number;
}

/** Returns the log as filters and range select it. hold reports whether new records wait, because somebody reads further down. */
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
      // Offline what is shown stays; back again, "reset" loads anew.
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
    if (latest.current.range.until) return; // what is new is later than that
    const events = batch.flatMap((e) => (e.name === "activity" ? [e.record] : []));
    if (events.length === 0) return;
    // Only the log itself knows what a text is in, and what was done to a server.
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
    else head.current = head.current.map((r) => list.told.added.get(r.id) ?? r); // those shown end in place
    const more = list.told.added.size - before;
    if (more > 0) announce(more === 1 ? "1 new record" : `${more} new records`);
    changed();
  };
  // With a text, what is newer than the list is asked for.
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

// Asks for what is in view and a little more. Who drags through the list asks for nothing on the way.
function want(list: List, first: number, last: number): void {
  clearTimeout(wanting);
  const end = Math.max(1, Math.min(last + ahead, list.cache.total));
  const ask = () => list.cache.want(Math.max(0, first - ahead), end);
  if (list.cache.row(Math.max(0, first)) && list.cache.row(Math.min(last, end) - 1)) ask();
  else wanting = window.setTimeout(ask, 40);
}

// The same object as long as nothing has changed, so that its row is not drawn again.
const finished = new WeakMap<Row, Row>();
function ended(list: List | undefined, row: Row | undefined): Row | undefined {
  if (!list || !row || row.status !== "pending") return row;
  const is = finished.get(row) ?? now(row, list.told);
  if (is !== row) finished.set(row, is);
  return is;
}

// What is seen at once; the rest of the first page follows when that is drawn.
const firstLook = 60;
const drawTime = 100; // ms

// Pages by offset, or by the cursor of the page before where that is known, which is faster far down.
function pages(query: Params, list: List, more: () => void) {
  const cursors = new Map<number, string>();
  let end = query.end_time;
  const ask = async (offset: number, limit: number, signal: AbortSignal) => {
    const cursor = cursors.get(offset);
    const answer = await api.get<ActivityList>("/activity", { ...query, end_time: end, ...(cursor ? { cursor } : { offset: offset || undefined }), limit }, signal);
    // A cursor is the place of a record, so that it does not matter that the first page was of a list without an end.
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

// An event does not tell what was done to a server or a configuration; its record does.
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
