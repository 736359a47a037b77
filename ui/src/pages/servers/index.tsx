// The Servers page: the list by state, and the details of one server.

import { useCallback, useMemo, useState } from "preact/hooks";
import { useServers, useStatus } from "../../data/shared";
import { rowsOf } from "../../data/window";
import { number } from "../../lib/format";
import { useActions } from "../../keys";
import { href, useQuery } from "../../router";
import { Button } from "../../ui/button";
import { SearchField } from "../../ui/field";
import { Icon } from "../../ui/icon";
import { Empty, Loaded, NothingFits, SkeletonRows } from "../../ui/parts";
import { Table } from "../../ui/table";
import { AddDialog } from "./add";
import { columnsOf } from "./columns";
import { useSelection } from "../../ui/selection";
import { Many } from "./many";
import { ServerDrawer } from "./drawer";
import { Help } from "./help";
import { broken, groupTitles, rows, sentence, type GroupName, type Row } from "./model";
import { Asked, type Ask } from "./more";
import { schema } from "./state";
import "./servers.css";

// Failure details are shown for this many servers; for others, open the drawer.
const maxDetails = 8;
// Lists longer than this have a filter.
const many = 12;

const nameOf = (r: Row) => ("server" in r ? r.server.name : undefined);
const keyOf = (r: Row) => ("server" in r ? "s " + r.server.name : "g " + r.group);

export default function Servers() {
  const [q, setQ] = useQuery(schema);
  const list = useServers();
  const status = useStatus();
  const [adding, setAdding] = useState(false);
  const [asked, ask] = useState<Ask>();
  const all = list.data ?? [];
  const shown = useMemo(() => rows(all, q.q, q.fold, q.sort), [all, q.q, q.fold, q.sort]);
  const source = useMemo(() => rowsOf(shown), [shown]);
  const columns = useMemo(() => columnsOf(ask), []);
  const selection = useSelection(shown, keyOf, nameOf);
  const explained = useMemo(() => new Set(all.filter(broken).slice(0, maxDetails).map((s) => s.name)), [all]);
  const detail = useCallback((r: Row) => ("server" in r && explained.has(r.server.name) ? <Help of={r.server} /> : undefined), [[...explained].join("\n")]);
  const fold = (g: GroupName) => setQ({ fold: q.fold.includes(g) ? q.fold.filter((x) => x !== g) : [...q.fold, g] }, { replace: true });
  const heading = useCallback((r: Row) => ("group" in r ? <Head of={r} onFold={() => fold(r.group)} /> : undefined), [q.fold]);
  const open = (name: string) => setQ({ id: name, part: name ? q.part : "about", variable: "" });
  const move = (by: number) => {
    const names = shown.flatMap((r) => ("server" in r ? [r.server.name] : []));
    const next = names[names.indexOf(q.id) + by];
    if (next) open(next);
  };
  useActions([{ key: "n", label: "Add server", icon: "plus", run: () => setAdding(true) }]);

  return (
    <div class={q.id ? "page fill servers-page at-record" : "page fill servers-page"}>
      <div class="log-head pad">
        <div class="head">
          <div>
            <h1>{list.data ? sentence(all) : "Servers"}</h1>
            {status.data && <p class="lead">Stored in <code>{status.data.config_path}</code>. You can also edit the file.</p>}
          </div>
          <div class="acts"><Button kind="main" icon="plus" cap="n" onClick={() => setAdding(true)}>Add server</Button></div>
        </div>
      </div>
      {(all.length > many || q.q) && (
        <div class="filters" role="search"><SearchField id="page-search" label="Filter by name" placeholder="Filter by name" value={q.q} onInput={(v) => setQ({ q: v }, { replace: true })} /></div>
      )}
      <Many of={selection} />
      <Loaded of={list} title="Could not load servers" skeleton={<table class="t servers"><tbody><SkeletonRows rows={8} columns={8} /></tbody></table>}>
        {() => (all.length === 0 ? (
          <Empty title="No servers yet" acts={<><Button kind="main" icon="plus" onClick={() => setAdding(true)}>Add server</Button><Button href={href("overview")}>Get started</Button></>}>
            To add servers, paste a client configuration, a command or a URL.
          </Empty>
        ) : (
          <div class={q.id ? "split open" : "split"}>
            <Table caption="Servers by state" class="servers cards" columns={columns} rows={source} rowKey={keyOf} heading={heading} detail={detail} order={q.sort} onOrder={(sort) => setQ({ sort })} picking={selection}
              open={q.id ? "s " + q.id : undefined} openAt={q.id ? shown.findIndex((r) => "server" in r && r.server.name === q.id) : undefined} onOpen={(r) => ("server" in r ? open(r.server.name) : fold(r.group))}
              empty={<NothingFits what="No matching servers" filters={`No name contains “${q.q}”.`} onClear={() => setQ({ q: "" })} />} />
            {q.id && <ServerDrawer name={q.id} part={q.part} variable={q.variable} onPart={(part) => setQ({ part, variable: "" }, { replace: true })} onMove={move} onClose={() => open("")} ask={ask} />}
          </div>
        ))}
      </Loaded>
      {adding && <AddDialog onClose={() => setAdding(false)} />}
      {asked && <Asked of={asked} onClose={() => ask(undefined)} onGone={(name) => name === q.id && open("")} />}
    </div>
  );
}

function Head({ of: { group, count, folded }, onFold }: { of: Extract<Row, { group: GroupName }>; onFold: () => void }) {
  return (
    <button type="button" class="fold" aria-expanded={!folded} onClick={onFold}>
      {groupTitles[group]}<span class="num">{number(count)}</span><Icon name={folded ? "right" : "down"} small />
    </button>
  );
}
