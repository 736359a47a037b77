// The table of clients: what each runs without asking, by lane.

import type { Client, Lane as LaneName, PermissionLane } from "../../api/types";
import { laneOf, placeOf, standing, verdictWords, type Standing } from "../../lib/clients";
import { number } from "../../lib/format";
import type { Order, Value } from "../../lib/order";
import { go, href, search } from "../../router";
import { Button } from "../../ui/button";
import { Head, type HeadOf } from "../../ui/head";
import { Icon } from "../../ui/icon";
import { Lane, State, type StateKind } from "../../ui/marks";
import { Menu } from "../../ui/menu";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import type { Row } from "./used";

const lanes: readonly LaneName[] = ["read", "write", "destructive"];

/** The address of a client's drawer; the order of the table stays. */
export const opened = (id: string) => href("clients", { id, sort: new URLSearchParams(search.peek()).get("sort") ?? undefined });

const heads: readonly HeadOf[] = [
  { key: "name", head: "Client", class: "k-name", order: "ascending" },
  ...lanes.map((l): HeadOf => ({ key: l, head: <Lane lane={l} />, class: l === "destructive" ? "k-l k-d" : "k-l", order: "ascending" })),
  { key: "calls", head: "24 h", class: "n k-n", order: "descending" }, { key: "seen", head: "Seen", class: "n k-n", order: "descending" }, { key: "action", head: <span class="vh">Action</span>, class: "k-a" },
];

const verdict = (lane: LaneName) => ({ client: c }: Row) => (c && standing(c) === "connected" ? (laneOf(c, lane)?.verdict ?? "unknown") : undefined);

/** The sort value of a row, by column. */
export const orders: Readonly<Record<string, (r: Row) => Value>> = {
  name: (r) => r.name, read: verdict("read"), write: verdict("write"), destructive: verdict("destructive"), calls: (r) => r.use?.calls, seen: (r) => r.use?.last,
};

export function ClientTable({ rows, open, order, onOrder, onDisconnect }: { rows: readonly Row[]; open: string; order: Order; onOrder: (order: Order) => void; onDisconnect: (c: Client) => void }) {
  return (
    <table class="t clients-t">
      <caption><span class="vh">Clients and their permissions</span></caption>
      <thead>
        <tr>{heads.map((h) => <Head key={h.key} of={h} order={order} onOrder={onOrder} />)}</tr>
      </thead>
      <tbody>
        {rows.map((r) => (
          <tr key={r.id + r.use?.raw} aria-selected={r.id !== "" && r.id === open ? "true" : undefined} onClick={(e) => pressed(e, r)}>
            <td class="k-name"><Name of={r} /></td>
            <Lanes of={r} />
            <td class="n k-n">{r.use?.calls ? <a class="hover" href={href("activity", { client: r.use.raw, since: "24h" })}>{number(r.use.calls)}</a> : <span class="dim">–</span>}</td>
            <td class="n dim k-n">{r.use && <Time at={r.use.last} />}</td>
            <td class="n k-a"><Action of={r} onDisconnect={onDisconnect} /></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

// A click in a row opens it, except on links and buttons.
function pressed(e: MouseEvent, r: Row): void {
  if (r.id && !(e.target as Element).closest("a, button, [popover]")) go(opened(r.id));
}

function Name({ of: r }: { of: Row }) {
  const name = <b class="strong"><Visible text={r.name} /></b>;
  return <span class="named"><a class="cut" href={r.id ? opened(r.id) : href("activity", { client: r.use?.raw || undefined })}>{name}</a><span class="dim"><Visible text={r.use?.versions.join(", ") ?? ""} /></span></span>;
}

const standings: Record<Exclude<Standing, "connected">, { kind: StateKind; word: string }> = {
  not: { kind: "off", word: "not connected" }, foreign: { kind: "wait", word: "connected to another server" }, missing: { kind: "bad", word: "command not found" }, broken: { kind: "bad", word: "cannot read its file" },
};

/** The connection state of a client. */
export function StandingOf({ of: c }: { of: Client }) {
  const s = standing(c);
  return s === "connected" ? <State kind="ready">connected</State> : <State kind={standings[s].kind}>{standings[s].word}</State>;
}

function Lanes({ of: { client } }: { of: Row }) {
  if (!client) return <td colSpan={3} class="k-all"><span class="dim">permissions unknown</span></td>;
  if (standing(client) !== "connected") return <td colSpan={3} class="k-all"><StandingOf of={client} /></td>;
  return <>{lanes.map((l) => <td key={l} class="k-l"><span class="only-small"><Lane lane={l} quiet /></span><Verdict of={laneOf(client, l)} /></td>)}</>;
}

/** The permission of a lane; a wrong one is marked. */
export function Verdict({ of: l }: { of?: PermissionLane }) {
  if (!l) return <span class="dim">unknown</span>;
  const why = [l.rule.text, placeOf(l.rule)].filter(Boolean).join(", ");
  if (l.right) return <span class={l.verdict === "runs" ? undefined : "soft"} title={why}>{verdictWords[l.verdict]}</span>;
  const kind = l.verdict === "unknown" ? "off" : "wait";
  return <span title={`${why}. Recommended: ${verdictWords[l.wanted]}.`}><State kind={kind}>{verdictWords[l.verdict]}</State></span>;
}

function Action({ of: { client, use }, onDisconnect }: { of: Row; onDisconnect: (c: Client) => void }) {
  if (!client) return null;
  const word = standing(client) === "broken" ? "View" : "Connect";
  if (standing(client) !== "connected") return <Button small onClick={() => go(opened(client.id))} label={`${word} ${client.name}`}>{word}</Button>;
  return (
    <Menu name={`More for ${client.name}`} class="btn quiet sm ico" end label={<Icon name="dots" />}>
      <button type="button" role="menuitem" onClick={() => go(opened(client.id))}><Icon name="file" small />View permissions</button>
      {use && <button type="button" role="menuitem" onClick={() => go(href("activity", { client: use.raw, since: "24h" }))}><Icon name="activity" small />View activity</button>}
      <hr />
      <button type="button" role="menuitem" onClick={() => onDisconnect(client)}><Icon name="close" small />Disconnect…</button>
    </Menu>
  );
}
