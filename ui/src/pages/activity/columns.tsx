import { clock, date, duration, exact, millis, number } from "../../lib/format";
import { own } from "../../lib/own";
import { href } from "../../router";
import { Icon } from "../../ui/icon";
import { Lane, Outcome, ToolName } from "../../ui/marks";
import type { Column } from "../../ui/table";
import { Visible } from "../../ui/words";
import { actionWords, isCall, who, type Row } from "./row";

const today = new Date().toDateString();

function When({ at }: { at: string }) {
  const t = new Date(at);
  return <time dateTime={at} title={exact(t)}>{t.toDateString() !== today && <span class="dim">{date(t, new Date())} </span>}{clock(t, true)}<span class="dim">{millis(t)}</span></time>;
}

const kinds: Record<string, string> = { approval: "approval", server_change: "server", config_change: "configuration", presence: "presence", system: "system" };

// The link keeps the current URL parameters.
function Name({ row }: { row: Row }) {
  const label = row.server || row.tool ? <ToolName server={row.server} tool={row.tool} /> : <span class="tool">{row.type === "config_change" ? "configuration" : "MCPProxy"}</span>;
  const params = new URLSearchParams(location.search);
  return <a href={href("activity", { ...Object.fromEntries(params), id: row.id })}>{label}</a>;
}

function Why({ row }: { row: Row }) {
  if (isCall(row)) return row.reason ? <span title={row.reason}><Visible text={row.reason} /></span> : null;
  const text = [row.action && actionWords(row.action), row.detail].filter(Boolean).join(": ");
  return text ? <span title={text}><Visible text={text} /></span> : null;
}

const time: Column<Row> = { key: "time", head: "Time", class: "c-time", cell: (r) => <When at={r.at} /> };
const lane: Column<Row> = {
  key: "lane", head: "Lane", class: "c-lane",
  cell: (r) => (r.lane ? <Lane lane={r.lane} /> : <span class="dim">{own(kinds, r.type) ?? "–"}</span>),
  filter: (r) => (r.lane ? { key: "lane", value: r.lane } : { key: "type", value: r.type }),
};
const tool: Column<Row> = {
  key: "tool", head: "Tool", class: "c-tool", cell: (r) => <Name row={r} />,
  filter: (r) => (r.tool ? { key: "tool", value: r.server ? `${r.server}:${r.tool}` : r.tool } : r.server ? { key: "server", value: r.server } : { key: "type", value: r.type }),
};
const why: Column<Row> = { key: "why", head: "Reason", class: "c-why", cell: (r) => <Why row={r} /> };
const client: Column<Row> = {
  key: "client", head: "Client", class: "c-client", cell: (r) => <Visible text={who(r)} />,
  filter: (r) => (r.client ? { key: "client", value: r.client } : undefined),
};
// A held tool or a blocked server is not a refusal.
const held = (r: Row) => (r.type === "approval" && r.status === "blocked" ? <span class="res block"><Icon name="block" small />{r.action?.startsWith("block") ? "blocked" : "held"}</span> : undefined);

const status: Column<Row> = {
  key: "status", head: "Outcome", class: "c-status",
  cell: (r) => <>{held(r) ?? <Outcome status={r.status} />}{(r.times ?? 0) > 1 && <span class="dim" title={`Refused ${number(r.times!)} times`}> ×{number(r.times!)}</span>}</>,
  filter: (r) => ({ key: "status", value: r.status }),
};
const took: Column<Row> = { key: "took", head: "Duration", class: "c-took n", cell: (r) => (r.type === "tool_call" && r.status !== "pending" && r.status !== "held" ? (r.ms > 0 ? duration(r.ms) : "< 1 ms") : <span class="dim">–</span>) };

/** The columns of the list, and those shown while a record is open. */
export const wide: readonly Column<Row>[] = [time, lane, tool, why, client, status, took];
export const narrow: readonly Column<Row>[] = [time, lane, tool, status, took];
