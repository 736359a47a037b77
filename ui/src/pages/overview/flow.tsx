// Calls over time, and a table of the lanes.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Lane as LaneName, Summary } from "../../api/types";
import { now } from "../../data/now";
import { carried, useRange } from "../../data/range";
import { ago, callMeaning, count, duration, exact, number, percent } from "../../lib/format";
import { within } from "../../lib/range";
import { go, href } from "../../router";
import { Chart, TableToggle } from "../../ui/chart";
import { Lane } from "../../ui/marks";
import { inSteps, summary } from "./words";

const lanes = ["read", "write", "destructive"] as const satisfies readonly LaneName[];
const fill = { read: "f-read", write: "f-write", destructive: "f-destr" } as const;

export function Flow({ of: s }: { of: Summary }) {
  const [range, setRange] = useRange();
  const [table, setTable] = useState(false);
  const nothing = s.calls + s.refused === 0;
  const span = (from: Date, to: Date) => ({ since: from.toISOString(), until: to.toISOString() });
  return (
    <section class="sec">
      <div class="top">
        <h2>{nothing ? `No calls ${within(range, now.value)}` : count(s.calls, "call")}</h2>
        <span class="dim">{nothing ? <Last at={s.last} ended={range.until !== ""} /> : `${inSteps(s.step_seconds)}, refused and failed below the line${s.cut ? "; only the newest records are counted" : ""}${s.incomplete ? "; newest records missing" : ""}`}</span>
        {!nothing && <TableToggle on={table} onChange={setTable} />}
      </div>
      <div class="flow">
        <Chart
          buckets={s.buckets} step={s.step_seconds} asTable={table} height={168}
          summary={nothing ? `No calls ${within(range, now.value)}.` : summary(s.buckets, s.step_seconds, s.refused, s.failed)}
          onRange={(from, to) => setRange(span(from, to))}
          onBucket={(from, to) => go(href("activity", span(from, to)))}
        />
        <Lanes of={s} />
      </div>
      {!nothing && <p class="dim glossary">{callMeaning}</p>}
    </section>
  );
}

// ended: the range ends before now.
function Last({ at, ended }: { at: string | undefined; ended: boolean }) {
  if (!at) return ended ? <>No earlier calls.</> : <>No calls yet. <a class="link" href={href("overview", { start: "1" })}>Make your first call</a></>;
  const text = ago(at, now.value);
  return <>Last call {text === "now" ? "just now" : <time dateTime={at} title={exact(at)}>{text} ago</time>}.</>;
}

function Lanes({ of: s }: { of: Summary }) {
  const at = carried("activity");
  const tally = (lane: string) => s.groups.find((g) => g.key === lane);
  const failed = [s.failed_tool > 0 && `${number(s.failed_tool)} tool`, s.failed_server > 0 && `${number(s.failed_server)} server`].filter(Boolean).join(", ");
  return (
    <table class="legend">
      <caption><span class="vh">Calls by lane</span></caption>
      <thead><tr><th scope="col">Lane</th><th class="n" scope="col">Calls</th><th class="n" scope="col">Share</th><th class="n" scope="col">p95</th></tr></thead>
      <tbody>
        {lanes.map((lane) => {
          const g = tally(lane);
          return (
            <tr key={lane} class={lane === "destructive" ? "cut-off" : undefined}>
              <td><a class="row" href={href("activity", { ...at, lane })}><Swatch css={fill[lane]} hatched={lane === "write"} /><Lane lane={lane} /></a></td>
              <td class="n">{number(g?.calls ?? 0)}</td>
              <td class="n dim">{g?.calls ? percent(g.calls, s.calls) : "–"}</td>
              <td class="n dim">{g?.calls ? (g.p95_ms < 1 ? "< 1 ms" : duration(g.p95_ms)) : "–"}</td>
            </tr>
          );
        })}
        <Below label="Refused" css="f-ref" outlined href={href("activity", { ...at, status: "blocked", type: "policy_decision" })} n={s.refused}>{s.refused ? "not sent" : ""}</Below>
        <Below label="Failed" css="f-fail" href={href("activity", { ...at, status: "error,interrupted", type: "tool_call" })} n={s.failed}>{failed}</Below>
      </tbody>
    </table>
  );
}

function Below({ label, css, outlined = false, href: to, n, children }: { label: string; css: string; outlined?: boolean; href: string; n: number; children: ComponentChildren }) {
  return <tr><td><a class="row" href={to}><Swatch css={css} outlined={outlined} />{label}</a></td><td class="n">{number(n)}</td><td class="n dim" colSpan={2}>{children}</td></tr>;
}

function Swatch({ css, hatched = false, outlined = false }: { css: string; hatched?: boolean; outlined?: boolean }) {
  const box = outlined ? { x: 0.5, y: 0.5, width: 9, height: 9 } : { width: 10, height: 10 };
  return <svg class="sw" viewBox="0 0 10 10" aria-hidden="true"><rect class={css} {...box} />{hatched && <rect fill="url(#hatch)" width="10" height="10" />}</svg>;
}
