// Tools that are selected, and enabled or disabled together.

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { api, type Params } from "../../api/client";
import type { SlimTool, ToolList } from "../../api/types";
import { count, number } from "../../lib/format";
import { Button } from "../../ui/button";
import { doAll, Selected } from "../../ui/selection";
import type { Picking } from "../../ui/table";
import { attempt } from "../../ui/toast";
import { switchable, switched } from "./locked";

// The limit of one request.
const most = 1000;

/** The table, with the selection above it; of: the filters, total: the number of matching tools. */
export function Picked({ of, total, onDone, children }: { of: Params; total: number; onDone: () => void; children: (picking: Picking<SlimTool>) => ComponentChildren }) {
  const [rows, set] = useState<ReadonlyMap<string, SlimTool>>(new Map());
  const [busy, setBusy] = useState(false);
  useEffect(() => set(new Map()), [JSON.stringify(of)]);
  const all = [...rows.values()];
  const pick = (t: SlimTool) => set((s) => new Map(s.has(t.name) ? [...s].filter(([name]) => name !== t.name) : [...s, [t.name, t]]));
  const pickAll = (on: boolean) => void attempt(async () => set(new Map(on ? (await api.get<ToolList>("/tools", { ...of, sort: "calls", limit: most })).tools.map((t) => [t.name, t]) : [])));
  const turn = async (on: boolean) => {
    setBusy(true);
    const tools = all.filter((t) => switchable(t, on));
    await doAll(tools, (t) => switched(t, on), (n) => `${on ? "Enabled" : "Disabled"} ${count(n, "tool")}.`, (done) => doAll(done, (t) => switched(t, !on), (n) => `Undone for ${count(n, "tool")}.`).then(onDone));
    setBusy(false);
    set(new Map());
    onDone();
  };
  const off = all.filter((t) => switchable(t, false)).length;
  const on = all.filter((t) => switchable(t, true)).length;
  const picking: Picking<SlimTool> = { picked: new Set(rows.keys()), name: nameOf, pick, all: all.length > 0 && all.length === Math.min(total, most), pickAll };
  return (
    <>
      <Selected count={all.length} note={total > most && all.length === most ? `of ${number(total)} (the limit)` : undefined} onClear={() => set(new Map())}>
        {off > 0 && <Button small decides disabled={busy} onClick={() => void turn(false)}>{`Disable ${number(off)}`}</Button>}
        {on > 0 && <Button small decides disabled={busy} onClick={() => void turn(true)}>{`Enable ${number(on)}`}</Button>}
        {off + on === 0 && <span class="dim">None of them can be enabled or disabled here.</span>}
      </Selected>
      {children(picking)}
    </>
  );
}

const nameOf = (t: SlimTool) => t.name;
