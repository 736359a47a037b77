// The heading of the page, and the actions on the whole log.

import { useState } from "preact/hooks";
import { api } from "../../api/client";
import { download } from "../../api/download";
import type { Summary, VerifyAnswer } from "../../api/types";
import { paused } from "../../data/live";
import { now } from "../../data/now";
import { callMeaning, count, number } from "../../lib/format";
import { params as times, within, type Range } from "../../lib/range";
import { useActions } from "../../keys";
import { Button } from "../../ui/button";
import { TableToggle } from "../../ui/chart";
import { Icon } from "../../ui/icon";
import { Menu } from "../../ui/menu";
import { attempt } from "../../ui/toast";
import { params, type Filters } from "./filters";
import { Verified, verification } from "./verify";

/** Returns the heading: "267 of 1,372 records". */
export function title(matched: number | undefined, all: number | undefined, filtered: boolean): string {
  if (matched === undefined) return "Activity";
  if (!filtered || all === undefined) return count(matched, "record");
  return `${number(matched)} of ${count(Math.max(all, matched), "record")}`;
}

export function Head({ matched, all, filtered, filters, range, summary, table, onTable }: {
  matched: number | undefined; all: number | undefined; filtered: boolean; filters: Filters; range: Range; summary: Summary | undefined; table: boolean; onTable: (on: boolean) => void;
}) {
  const span = within(range, now.value);
  return (
    <div class="log-head">
      <div class="head">
        <div>
          <h1>{title(matched, all, filtered)}</h1>
          <p class="lead">
            {span[0]!.toUpperCase() + span.slice(1)}
            {summary ? <>: <span title={callMeaning}><b>{count(summary.calls, "call")}</b>, <b>{number(summary.calls - summary.failed)}</b> ok, <b>{number(summary.failed)}</b> failed; <b>{number(summary.refused)}</b> refused (not counted as calls).</span>{summary.cut && " Only the newest records are counted."} </> : ". "}
            <TableToggle on={table} onChange={onTable} />
          </p>
        </div>
        <div class="acts">
          <Pause />
          <Verify />
          <Export filters={filters} range={range} />
        </div>
      </div>
      <Verified />
    </div>
  );
}

function Pause() {
  const on = paused.value;
  const run = () => (paused.value = !paused.peek());
  const label = on ? "Resume" : "Pause";
  useActions([{ key: "l", label: on ? "Resume live records" : "Pause live records", icon: on ? "play" : "pause", run }]);
  return <Button icon={on ? "play" : "pause"} pressed={on} onClick={run} title={`${label} (l)`}>{label}</Button>;
}

function Verify() {
  const [busy, setBusy] = useState(false);
  const run = async () => {
    if (busy) return;
    setBusy(true);
    await attempt(async () => (verification.value = await api.get<VerifyAnswer>("/activity/verify")));
    setBusy(false);
  };
  useActions([{ label: "Verify activity log", icon: "shield-ok", run: () => void run() }]);
  return <Button icon="shield-ok" disabled={busy} onClick={run}>{busy ? "Verifying…" : "Verify"}</Button>;
}

const formats = [
  { format: "jsonl", include_bodies: true, text: "JSON Lines, with arguments and results" },
  { format: "jsonl", include_bodies: false, text: "JSON Lines, without them" },
  { format: "csv", include_bodies: false, text: "CSV" },
] as const;

function Export({ filters, range }: { filters: Filters; range: Range }) {
  const [busy, setBusy] = useState(false);
  const run = async ({ format, include_bodies }: (typeof formats)[number]) => {
    setBusy(true);
    const at = new Date();
    const name = `mcpproxy-activity-${at.toISOString().slice(0, 19).replaceAll(":", "")}.${format}`;
    await attempt(() => download("/activity/export", { ...params(filters), ...times(range, at), format, include_bodies }, name), { text: `Saved as ${name}` });
    setBusy(false);
  };
  return (
    <Menu class="btn" end label={<><Icon name="save" small />{busy ? "Exporting…" : "Export"}</>}>
      <p class="dim menu-head">Export filtered records</p>
      {formats.map((f) => <button type="button" role="menuitem" key={f.text} onClick={() => void run(f)}>{f.text}</button>)}
    </Menu>
  );
}
