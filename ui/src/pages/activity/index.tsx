// The Activity page: the records, their filters, and the open record.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, explain } from "../../api/client";
import { offline } from "../../api/connection";
import type { ActivityList, Summary } from "../../api/types";
import { useRange } from "../../data/range";
import { useResource } from "../../data/resource";
import { now } from "../../data/now";
import { useSlow } from "../../data/slow";
import { count } from "../../lib/format";
import { all as everything, label, params as times, periodMs, step, type Range } from "../../lib/range";
import { useQuery } from "../../router";
import { Button } from "../../ui/button";
import { FilterBar } from "../../ui/chips";
import { SearchField } from "../../ui/field";
import { Banner, ErrorPart, Skeleton } from "../../ui/parts";
import { Table } from "../../ui/table";
import { useChoices } from "./choices";
import { narrow, wide } from "./columns";
import { isEmpty, none, params, patch, schema, valuesOf, type Filters, type Key } from "./filters";
import { Head } from "./head";
import { Histogram, merged } from "./histogram";
import { useLog } from "./log";
import { Listening, Nothing } from "./nearest";
import { RecordDrawer } from "./record";
import type { Row } from "./row";
import "./activity.css";

export default function Activity() {
  const [q, setQ] = useQuery(schema);
  const [range, setRange] = useRange();
  const { id, ...filters } = q;
  const [atTop, setAtTop] = useState(true);
  const [table, setTable] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const log = useLog(filters, range, !atTop || id !== "");
  const filtered = !isEmpty(filters);
  const { fit, under, all } = useCounts(filters, range, log.key, log.turn);
  const open = useOpen(log.rows.row, log.rows.total, id);

  const add = ({ key, value }: { key: string; value: string }) => {
    const k = key as Key;
    if (!valuesOf(filters, k).includes(value)) setQ(patch(k, [...valuesOf(filters, k), value]));
  };
  const show = (row: Row) => setQ({ id: row.id }, { replace: id !== "" });
  const move = (by: number) => {
    const row = open.beside(by);
    if (row) show(row);
  };
  const newer = () => {
    box.current?.querySelector(".log")?.scrollTo(0, 0);
    log.show();
  };
  const slow = useSlow(!log.rows.known && log.rows.error === undefined);
  const matched = log.rows.known ? log.rows.total + log.newer : undefined;
  const buckets = useMemo(() => (under ? merged(under, fit) : []), [under, fit]);
  return (
    <div class={id ? "page fill at-record" : "page fill"} ref={box}>
      <Head {...{ matched, all, filtered, filters, range, table }} summary={fit} onTable={setTable} />
      <Histogram under={under} buckets={buckets} filters={filters} table={table} onRange={(from, to) => setRange({ since: from.toISOString(), until: to.toISOString() })} />
      <Filtering filters={filters} range={range} setQ={setQ} setRange={setRange}
        end={log.newer > 0 && <Button small icon="up" class="newer" onClick={newer}>{`${count(log.newer, "newer", "newer")}`}</Button>} />
      {!filtered && fit && !fit.last && fit.refused === 0 && log.rows.total > 0 && <div class="listening"><Listening /></div>}
      {log.rows.error !== undefined && log.rows.total > 0 && !offline.value && <Banner icon="err" act={<Button small onClick={log.rows.reload}>Try again</Button>}>Could not load part of the log: {explain(log.rows.error).message}</Banner>}
      <div class={id ? "split open" : "split"}>
        {log.rows.error !== undefined && log.rows.total === 0 ? <ErrorPart title="Could not load activity" error={log.rows.error} onRetry={log.rows.reload} /> : (
          slow ? <div class="pad-line"><Skeleton lines={12} /></div> : <Table caption="Activity, newest first" class={id ? "cards rec tight" : "cards rec"} columns={id ? narrow : wide} rows={log.rows} rowKey={(r) => r.id} order="-time" onOpen={show} onFilter={add} onTop={setAtTop}
            {...(id ? { open: id } : {})} empty={<Nothing filters={filters} range={range} onRange={setRange} onClear={() => setQ(none)} />} />
        )}
        {id && <RecordDrawer id={id} row={open.row} key="drawer" onMove={move} onSession={(session) => setQ({ ...none, session, id: "" })} onClose={() => setQ({ id: "" })} />}
      </div>
    </div>
  );
}

// The search field and the filters.
function Filtering({ filters, range, setQ, setRange, end }: {
  filters: Filters; range: Range; setQ: (patch: Partial<Filters>, o?: { replace?: boolean }) => void; setRange: (r: Range) => void; end: preact.ComponentChildren;
}) {
  const choices = useChoices(filters);
  const custom = periodMs(range.since) === 0 && range.since !== everything;
  const time = { key: "time", name: "Time", values: custom ? [label(range, now.value)] : [] };
  const onChange = (key: string, values: string[]) => (key === "time" ? setRange({ since: "", until: "" }) : setQ(patch(key as Key, values)));
  return (
    <FilterBar filters={[...choices.filters, time]} onChange={onChange} onClear={() => setQ(none)} onSearch={choices.onSearch} saved="activity" end={end}>
      <Words text={filters.q} onText={(q) => setQ({ q }, { replace: true })} />
    </FilterBar>
  );
}

// The text goes into the URL after a pause in typing.
function Words({ text, onText }: { text: string; onText: (text: string) => void }) {
  const [typed, setTyped] = useState(text);
  const timer = useRef(0);
  useEffect(() => setTyped(text), [text]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const type = (v: string) => {
    setTyped(v);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(onText, v ? 150 : 0, v);
  };
  return <SearchField id="page-search" value={typed} label="Search arguments, results and reasons" placeholder="Search arguments, results, reasons" onInput={type} />;
}

const often = 3000;

// The counts of the heading and the histogram. They load after the rows, and then at most every 3 s.
function useCounts(filters: Filters, range: Range, key: string, turn: number): { fit?: Summary | undefined; under?: Summary | undefined; all?: number | undefined } {
  const [tick, setTick] = useState(0);
  const timer = useRef(0);
  useEffect(() => void (timer.current ||= window.setTimeout(() => ((timer.current = 0), setTick((n) => n + 1)), often)), [turn]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const counts = useResource(key ? `counts ${key}` : null, async (signal) => {
    const t = times(range, new Date());
    const ask = (f: Filters) => api.get<Summary>("/activity/summary", { ...params(f), ...t, step: step(range, new Date()) }, signal);
    const fit = ask(filters);
    const under = filters.lane.length ? ask({ ...filters, lane: [] }) : fit;
    const all = isEmpty(filters) ? undefined : api.get<ActivityList>("/activity", { ...t, limit: 1 }, signal);
    const [f, u, a] = await Promise.all([fit, under, all]);
    return { fit: f, under: u, all: a?.total };
  }, { turn: tick });
  return counts.data ?? {};
}

// The position of the open record in the list, for previous and next.
function useOpen(row: (i: number) => Row | undefined, total: number, id: string) {
  const at = useRef(-1);
  if (id && row(at.current)?.id !== id) {
    at.current = -1;
    for (let i = 0; i < Math.min(total, 10_000) && at.current < 0; i++) if (row(i)?.id === id) at.current = i;
  }
  return { row: id ? row(at.current) : undefined, beside: (by: number) => (at.current < 0 ? row(0) : row(at.current + by)) };
}
