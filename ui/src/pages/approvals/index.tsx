// The Approvals page: the list of items that need review, and the selected one.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useStatus } from "../../data/shared";
import { useActions } from "../../keys";
import { count, number } from "../../lib/format";
import { oneOf, text } from "../../lib/query";
import { href, useQuery } from "../../router";
import { announce } from "../../ui/announce";
import { Button } from "../../ui/button";
import { Chip } from "../../ui/chips";
import { Icon } from "../../ui/icon";
import { Empty, ErrorPart, NothingFits, Skeleton } from "../../ui/parts";
import { attempt, toast } from "../../ui/toast";
import "./approvals.css";
import { CallDetail } from "./call";
import { approveMany, takeBackMany } from "./decide";
import { Detail } from "./detail";
import { Inbox } from "./inbox";
import { useInbox } from "./list";
import { alike, fits, foundIn, idOf, isClean, isDefinition, itemAt, offerKinds, ordered, sections, waits, type DefinitionItem, type Item } from "./model";
import { useNarrow } from "./narrow";
import { ServerDetail } from "./server";
import { SameFinding, Together } from "./together";
import { heading, lead } from "./words";

const schema = { id: text(), kind: oneOf(["", "call", ...offerKinds], ""), show: oneOf(["all", "findings", "clean"], "all"), found: text(), view: oneOf(["difference", "whole", "json"], "difference") };

export default function Approvals() {
  const inbox = useInbox();
  const [q, setQ] = useQuery(schema);
  const narrow = useNarrow();
  const pane = useRef<HTMLElement>(null);
  const all = inbox.data;
  const list = useMemo(() => sections((all ?? []).filter((i) => fits(i, q.show) && (!q.found || foundIn(i) === q.found))), [all, q.show, q.found]);
  const target = itemAt(q.kind, q.id);
  const current = target?.key ?? "";
  const order = useMemo(() => ordered(list).filter((i) => waits(i) || i.key === current), [list, current]);
  const at = order.findIndex((i) => i.key === current);
  const last = useRef(0); // the index of the current item, kept when it is no longer in the list
  if (at >= 0) last.current = at;

  const place = (i: Item | undefined) => (i ? { id: idOf(i), kind: i.kind === "server" || i.kind === "tool" ? ("" as const) : i.kind } : { id: "", kind: "" as const });
  const open = (i: Item | undefined) => setQ(place(i), { replace: true });
  const kept = { show: q.show === "all" ? undefined : q.show, found: q.found };
  const link = (i: Item) => href("approvals", { ...place(i), ...kept });
  const move = (by: number) => {
    const to = at >= 0 ? at + by : Math.min(last.current, order.length - 1);
    const next = order[to];
    if (!next || to === at) return;
    open(next);
    announce(idOf(next));
  };
  // With both panes in view, one item is always open.
  useEffect(() => {
    if (!narrow && !current && order.length > 0) open(order[0]);
  }, [narrow, current, order]);
  useActions([
    { key: "j", label: "Next", when: order.length > 0, run: () => move(1) },
    { key: "k", label: "Previous", when: order.length > 0, run: () => move(-1) },
    { key: "Escape", label: "Back to the list", when: narrow && !!current, run: () => open(undefined) },
  ]);

  if (!all) return inbox.error !== undefined ? <div class="page"><h1>Approvals</h1><ErrorPart title="Could not load approvals" error={inbox.error} onRetry={inbox.reload} /></div> : <div class="page">{inbox.slow && <><h1 class="vh">Approvals</h1><Skeleton lines={10} /></>}</div>;
  const waiting = all.filter(waits);
  if (all.length === 0 && !target) return <div class="page"><Nothing alone /></div>;

  const item = all.find((i) => i.key === current);
  const done = () => {
    const next = at >= 0 ? (order[at + 1] ?? order[at - 1]) : order[last.current];
    if (item) inbox.settle([item]);
    else inbox.reload();
    open(next && next.key !== current ? next : undefined);
    setTimeout(() => pane.current?.focus({ preventScroll: true }), 50); // a dialog gives the focus back first
  };
  const undone = () => {
    if (item) inbox.unsettle([item]);
    else inbox.reload();
    open(item ?? (target && ({ ...target } as Item)));
  };
  const back = <a class="only-small back" href={href("approvals", kept)}><Icon name="left" small />{heading(waiting.length)}</a>;
  const decided = (some: readonly Item[]) => {
    inbox.settle(some);
    const next = order.find((i) => !some.some((s) => s.key === i.key));
    if (!next && q.found) setQ({ ...place(undefined), found: "" });
    else if (some.some((i) => i.key === current)) open(next);
  };
  const groups = alike(waiting);
  const same = item && groups.find((a) => a.found === foundIn(item) && a.found !== q.found);
  const common = { onDone: done, onNext: order.some((i) => i.key !== current) ? () => move(at === order.length - 1 ? -1 : 1) : undefined, back };
  return (
    <div class="page fill">
      <div class={target ? "panes at-detail" : "panes at-list"}>
        <div class="pane-list">
          <div class="pane-head">
            <h1>{heading(waiting.length)}</h1>
            <p class="lead">{lead(waiting.filter((i) => i.kind === "call").length, waiting.length)}</p>
            <Leases />
            {inbox.warnings.map((w) => <p class="note" key={w}>{w}</p>)}
            <div class="chips" role="group" aria-label="Show">
              {(["all", "findings", "clean"] as const).map((show) => (
                <Chip key={show} on={q.show === show} count={waiting.filter((i) => fits(i, show)).length} onClick={() => setQ({ show, found: "" })}>{{ all: "All", findings: "With findings", clean: "Clean" }[show]}</Chip>
              ))}
              {(groups.length > 0 || q.found) && <SameFinding groups={groups} found={q.found} onFound={(found) => setQ({ found, show: "all", ...place(undefined) })} />}
            </div>
          </div>
          {list.length > 0 ? <Inbox list={list} current={current} link={link} /> : <NothingFits what={q.show === "clean" ? "No clean items" : "No items with findings"} filters="" onClear={() => setQ({ show: "all", found: "" })} />}
{q.found
            ? <Together items={waiting.filter((i) => foundIn(i) === q.found).filter(isDefinition)} onDone={decided} onBack={inbox.unsettle} />
            : <Bulk items={waiting.filter(isClean)} onDone={decided} onBack={inbox.unsettle} />}
        </div>
        <section class="pane" aria-label={target ? (item?.kind === "call" ? item.call.name : idOf(target)) : "No item selected"} ref={pane} tabIndex={-1}>
          {!target ? !narrow && <Nothing chosen={waiting.length > 0} />
            : target.kind === "call" ? <CallDetail key={current} id={target.name} {...common} />
              : target.kind === "server" ? <ServerDetail key={current} name={target.server} item={item?.kind === "server" ? item : undefined} {...common} />
                : <Detail key={current} target={{ ...target, kind: target.kind }} item={item && isDefinition(item) ? item : undefined} view={q.view} onView={(view) => setQ({ view })} onBack={undone} {...common}
                  same={same && <p class="same">{count(same.count - 1, "other")} {same.count === 2 ? "has" : "have"} the same {item && isDefinition(item) && item.findings.length > 1 ? "findings" : "finding"}. <a class="link" href={href("approvals", { ...place(item), found: same.found })}>Review them together</a></p>} />}
        </section>
      </div>
    </div>
  );
}

// Active leases are shown next to pending calls.
function Leases() {
  const n = useStatus().data?.held.leases ?? 0;
  return n > 0 ? <p class="lead"><a class="link" href={href("clients")}>{count(n, "active lease")}</a>: matching calls run without asking.</p> : null;
}

// alone: the empty state is the whole page, with the heading of the page.
function Nothing({ chosen = false, alone = false }: { chosen?: boolean; alone?: boolean }) {
  const status = useStatus().data;
  if (chosen) return <Empty title="No item selected">Select an item in the list.</Empty>;
  const n = status?.tools.total ?? 0;
  const text = `${n > 0 ? `${count(n, "tool")} unchanged. ` : ""}Changed definitions and servers that agents propose appear here.`;
  return alone ? <div class="empty"><h1>{heading(0)}</h1><p>{text}</p><Leases /></div> : <Empty title={heading(0)}>{text}</Empty>;
}

function Bulk({ items, onDone, onBack }: { items: readonly DefinitionItem[]; onDone: (done: readonly Item[]) => void; onBack: (back: readonly Item[]) => void }) {
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    await attempt(async () => {
      const { done, problems } = await approveMany(items);
      onDone(done);
      const left = problems.length ? ` ${number(problems.length)} failed: ${problems[0]}` : "";
      toast({ text: `Approved ${number(done.length)}.${left}`, ...(done.length ? { undo: () => takeBackMany(done).finally(() => onBack(done)) } : {}) });
    });
    setBusy(false);
  };
  useActions([{ label: `Approve ${number(items.length)} clean`, when: items.length > 0, icon: "check", run }]);
  if (items.length === 0) return null;
  return <div class="pane-foot"><Button small decides disabled={busy} onClick={run}>{busy ? "Approving…" : `Approve ${number(items.length)} clean`}</Button><span class="dim">no findings, no hints relaxed</span></div>;
}
