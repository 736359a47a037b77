// Calls over time. uPlot draws the chart and loads on first use; the text
// alternatives are here: a summary as caption, and a table.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { theme } from "../data/prefs";
import { clock, date, number } from "../lib/format";
import type { Bucket, Plot, PlotProps } from "./plot";

export interface ChartProps extends PlotProps {
  /** The text alternative of the chart. */
  summary: string;
  /** The heading, with "Show as table" at its end; absent: no toggle. */
  title?: ComponentChildren;
  titleEnd?: ComponentChildren;
  /** Shows the table, for a page that has its own heading with a <TableToggle>. */
  asTable?: boolean;
}

/** Calls by lane above the line, refused and failed below it. */
export function Chart(p: ChartProps) {
  const [own, setOwn] = useState(false);
  const table = p.asTable ?? own;
  return (
    <figure class="sec-chart">
      {p.title && (
        <div class="top row">
          <h2>{p.title}</h2>{p.titleEnd}
          <TableToggle on={table} onChange={setOwn} />
        </div>
      )}
      <figcaption class="vh">{p.summary}</figcaption>
      {table ? <AsTable buckets={p.buckets} /> : <Drawing {...p} />}
    </figure>
  );
}

/** Switches a chart to its table. */
export function TableToggle({ on, onChange }: { on: boolean; onChange: (on: boolean) => void }) {
  return <button type="button" class="link end end2 plain-button" onClick={() => onChange(!on)}>{on ? "Show as chart" : "Show as table"}</button>;
}

function Drawing(p: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<Plot | undefined>(undefined);
  const latest = useRef(p);
  latest.current = p;
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    let gone = false;
    import("./plot").then(
      (m) => {
        if (!gone && box.current) plot.current = m.plot(box.current, () => latest.current);
      },
      () => setFailed(true),
    );
    return () => {
      gone = true;
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, []);
  const lanes = p.lanes?.join();
  useEffect(() => plot.current?.update(), [p.buckets, lanes, p.height, theme.value]);
  if (failed) return <AsTable buckets={p.buckets} />;
  return <div class="chart up" ref={box} aria-hidden="true" style={{ minHeight: `${p.height ?? 150}px` }} />;
}

function AsTable({ buckets }: { buckets: readonly Bucket[] }) {
  const now = new Date();
  const rows = buckets.filter((b) => b.read + b.write + b.destructive + b.refused + b.failed > 0);
  return (
    <div class="under" tabIndex={0} aria-label="Calls over time">
      <table class="t">
        <caption><span class="vh">Calls over time, without empty periods</span></caption>
        <thead><tr><th scope="col">From</th>{["Read", "Write", "Destructive", "Refused", "Failed"].map((h) => <th scope="col" class="n" key={h}>{h}</th>)}</tr></thead>
        <tbody>
          {rows.map((b) => (
            <tr key={b.start}>
              <td>{date(new Date(b.start), now)} {clock(b.start)}</td>
              {[b.read, b.write, b.destructive, b.refused, b.failed].map((n, i) => <td class="n" key={i}>{number(n)}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
