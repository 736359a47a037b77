// The columns of the list, and the main action of each row.

import { now } from "../../data/now";
import { number, span } from "../../lib/format";
import { commandLine } from "../../lib/paste";
import { go, href } from "../../router";
import { Button } from "../../ui/button";
import { serverState, State, Tag } from "../../ui/marks";
import { Spark } from "../../ui/spark";
import type { Column } from "../../ui/table";
import { Visible } from "../../ui/words";
import type { Server } from "../../api/types";
import { MoreMenu, type Ask } from "./more";
import { broken, needsLogin, needsSecret, tools, type Row } from "./model";
import { took } from "./took";
import { opened, restart } from "./state";

const dash = <span class="dim">–</span>;

/** The state of a server; while it starts, the step and its duration. */
export function StateOf({ of: s }: { of: Server }) {
  const { kind, word } = serverState(s);
  if (kind !== "moving" || !s.step) return <State kind={kind}>{word}</State>;
  const since = s.step_since ? (now.value.getTime() - Date.parse(s.step_since)) / 1000 : 0;
  return <State kind={kind}>{s.step}{since >= 5 && <span class="dim num">, {span(since)}</span>}</State>;
}

/** The number of callable tools, and of all tools; a link to them. */
export function ToolCount({ of: s }: { of: Server }) {
  const t = tools(s);
  if (!t) return <span class="dim" title={s.hint}>unknown</span>;
  return <a class="hover" href={href("tools", { server: s.name })}>{number(t.callable)}{t.callable < t.total && <span class="dim"> of {number(t.total)}</span>}</a>;
}

function Name({ of: s }: { of: Server }) {
  // The row may be older than the filter: a click uses the current URL.
  const open = (e: MouseEvent) => {
    if (e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
    e.preventDefault();
    go(opened(s.name));
  };
  return <a class="name" href={opened(s.name)} onClick={open}><Visible text={s.name} /></a>;
}

function Calls({ of: s }: { of: Server }) {
  if (!s.calls) return null;
  return <a class="row" href={href("activity", { server: s.name, since: "24h" })}><Spark hours={s.calls.hours} /><span class="num">{number(s.calls.calls)}</span></a>;
}

function More({ of: s, ask }: { of: Server; ask: (a: Ask) => void }) {
  if (s.enabled && s.quarantined) return <Button small href={href("approvals", { id: s.name })}>Review</Button>;
  if (needsLogin(s)) return <Button small decides onClick={() => ask({ what: "login", server: s })}>Log in</Button>;
  if (needsSecret(s)) return <Button small decides label={`Set the secrets of ${s.name}…`} onClick={() => ask({ what: "secret", server: s })}>Secret…</Button>;
  if (broken(s)) return <Button small decides onClick={() => restart(s)}>Restart</Button>;
  return <MoreMenu of={s} ask={ask} />;
}

/** Returns the columns; heads of groups are drawn by the table's heading. */
export function columnsOf(ask: (a: Ask) => void): Column<Row>[] {
  const of = (cell: (s: Server) => preact.ComponentChildren) => (row: Row) => ("server" in row ? cell(row.server) : null);
  return [
    { key: "name", head: "Server", class: "c-name", order: "ascending", cell: of((s) => <Name of={s} />) },
    {
      key: "state", head: "State", class: "c-state", order: "ascending",
      cell: of((s) => <><StateOf of={s} />{s.enabled && !s.quarantined && !!s.waiting && <> <a href={href("approvals")}><Tag kind="warm">{number(s.waiting)} to review</Tag></a></>}</>),
    },
    { key: "how", head: "Command or URL", class: "c-how how", order: "ascending", cell: of((s) => <Visible text={commandLine(s)} />) },
    { key: "tools", head: "Tools", class: "c-tools n", order: "descending", cell: of((s) => <ToolCount of={s} />) },
    { key: "calls", head: "Calls in 24 h", class: "c-calls", order: "descending", cell: of((s) => <Calls of={s} />) },
    { key: "p95", head: "p95", class: "c-p95 n", order: "descending", cell: of((s) => (s.calls?.calls ? took(s.calls.p95_ms) : dash)) },
    { key: "trust", head: "Trust", class: "c-trust soft", order: "ascending", cell: of((s) => (s.proposed_by ? dash : s.trust || dash)) },
    { key: "more", head: <span class="vh">Action</span>, class: "c-more n", cell: of((s) => <More of={s} ask={ask} />) },
  ];
}
