import { useMemo, useRef } from "preact/hooks";
import { api } from "../../api/client";
import type { SlimTool, ToolList } from "../../api/types";
import { useWindow } from "../../data/window";
import type { Order } from "../../lib/order";
import { number } from "../../lib/format";
import { Button } from "../../ui/button";
import { Lane, State, Tag, ToolName } from "../../ui/marks";
import { Empty, ErrorPart, NothingFits, Skeleton } from "../../ui/parts";
import { Table, type Column } from "../../ui/table";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { href } from "../../router";
import { Picked } from "./picked";
import { orderParams, params, sentence, word, type Query } from "./query";

const columns: readonly Column<SlimTool>[] = [
  {
    key: "name", head: "Tool", class: "c-tool", order: "ascending",
    cell: (t) => <><a class="name" href={href("tools", { ...kept(), id: t.name })}><ToolName server={t.server} tool={t.tool} /></a>{t.alias && <> <Tag kind="line">alias {t.alias}</Tag></>}{t.always && <> <Tag kind="line">always</Tag></>}{t.deprecated && <> <Tag kind="line">deprecated</Tag></>} <span class="dim sum"><Visible text={t.summary || t.title || ""} /></span></>,
    filter: (t) => ({ key: "server", value: t.server }),
  },
  { key: "status", head: "Status", class: "c-can", cell: (t) => !t.status ? <State kind="ready">callable</State> : <State kind={/pending|quarantined/.test(t.status) ? "wait" : "off"}>{word("status", t.status)}</State>, filter: (t) => ({ key: "status", value: t.status ?? "callable" }) },
  { key: "lane", head: "Lane", class: "c-lane", cell: (t) => <Lane lane={t.lane} guessed={t.guessed} />, filter: (t) => ({ key: "lane", value: t.lane }) },
  { key: "tokens", head: "Tokens", class: "n c-tok", order: "descending", cell: (t) => <span class="dim">{number(t.tokens)}</span> },
  { key: "calls", head: "Calls", class: "n c-calls", order: "descending", cell: (t) => (t.calls ? number(t.calls) : <span class="dim">never</span>) },
  { key: "last", head: "Last", class: "n c-last", order: "descending", cell: (t) => <Time at={t.last_used} class="dim" /> },
];

// A link keeps the filters of the page.
function kept(): Record<string, string> {
  return Object.fromEntries(new URLSearchParams(location.search));
}

interface Props {
  q: Query; turn: number; /** Whether there is any tool at all. */ any: boolean; slow: boolean;
  onOpen: (id: string) => void; onFilter: (f: { key: string; value: string }) => void; onClear: () => void; onOrder: (order: Order) => void; onChanged: () => void;
}

/** The tools that match the filters, the most used first. */
export function List({ q, turn, any, slow, onOpen, onFilter, onClear, onOrder, onChanged }: Props) {
  const filter = { ...params(q), ...orderParams(q.sort) };
  const key = JSON.stringify(filter) + turn;
  // All pages come from one snapshot; if it expired, the list is reloaded.
  const snapshot = useRef<{ key: string; id?: string }>({ key: "" });
  const rows = useWindow<SlimTool>(key, async (offset, limit, signal) => {
    const known = offset > 0 && snapshot.current.key === key ? snapshot.current.id : undefined;
    const page = await api.get<ToolList>("/tools", { ...filter, limit, offset, snapshot: known }, signal);
    if (offset === 0) snapshot.current = { key, id: page.snapshot };
    else if (page.snapshot !== known) setTimeout(() => rows.reload());
    return { rows: page.tools, total: page.total };
  }, 200);
  const empty = useMemo(() => (any
    ? <NothingFits what="No tools match these filters" filters={sentence(q)} onClear={onClear} />
    : <Empty title="No tools yet" acts={<Button kind="main" href={href("servers")}>Add a server</Button>}>Tools appear here after a server has started.</Empty>), [any, key]);
  if (rows.error && !rows.known) return <ErrorPart title="Could not load tools" error={rows.error} onRetry={rows.reload} />;
  if (!rows.known) return slow ? <div class="ask"><Skeleton lines={12} /></div> : null;
  return (
    <Picked of={params(q)} total={rows.total} onDone={onChanged}>
      {(picking) => (
        <Table class="cards tools" caption="Tools" columns={columns} rows={rows} rowKey={(t) => t.name} order={q.sort || "-calls"} onOrder={onOrder} picking={picking}
          open={q.id || undefined} onOpen={(t) => onOpen(t.name)} onFilter={onFilter} empty={empty} />
      )}
    </Picked>
  );
}
