// Tools that are ticked, and switched on or off together.

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

// As many as one request lists.
const most = 1000;

/** Draws the table with what is ticked above it; of: the filters, total: how many they select. */
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
    await doAll(tools, (t) => switched(t, on), (n) => `Switched ${on ? "on" : "off"} ${count(n, "tool")}.`, (done) => doAll(done, (t) => switched(t, !on), (n) => `Switched ${count(n, "tool")} back.`).then(onDone));
    setBusy(false);
    set(new Map());
    onDone();
  };
  const off = all.filter((t) => switchable(t, false)).length;
  const on = all.filter((t) => switchable(t, true)).length;
  const picking: Picking<SlimTool> = { picked: new Set(rows.keys()), name: nameOf, pick, all: all.length > 0 && all.length === Math.min(total, most), pickAll };
  return (
    <>
      <Selected count={all.length} note={total > most && all.length === most ? `of ${number(total)}, as many as are done at once` : undefined} onClear={() => set(new Map())}>
        {off > 0 && <Button small decides disabled={busy} onClick={() => void turn(false)}>{`Switch off ${number(off)}`}</Button>}
        {on > 0 && <Button small decides disabled={busy} onClick={() => void turn(true)}>{`Switch on ${number(on)}`}</Button>}
        {off + on === 0 && <span class="dim">None of them can be switched here.</span>}
      </Selected>
      {children(picking)}
    </>
  );
}

const nameOf = (t: SlimTool) => t.name;
