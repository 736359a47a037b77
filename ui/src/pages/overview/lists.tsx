// The busiest tools, recent refusals, and the clients.

import type { ComponentChildren } from "preact";
import { api } from "../../api/client";
import type { ActivityList, Summary, ToolList } from "../../api/types";
import { carried, useRange } from "../../data/range";
import { useResource, type Resource } from "../../data/resource";
import { clock, exact, number } from "../../lib/format";
import { params, step } from "../../lib/range";
import { href } from "../../router";
import { Lane, ToolName } from "../../ui/marks";
import { Loaded } from "../../ui/parts";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { lastRefused, refusedAt, whyRefused } from "./words";

const most = 6;
const recent = 100; // a repeated refusal keeps the position of its first time, so more records than shown are needed

export function Lists({ turn, refused }: { turn: number; refused?: number }) {
  const [range] = useRange();
  const within = () => params(range, new Date());
  const key = `${range.since} ${range.until}`;
  const groups = (group: string) => (signal: AbortSignal) => api.get<Summary>("/activity/summary", { ...within(), step: step(range, new Date(), 1), group }, signal);
  const tools = useResource(`busy ${key}`, groups("tool"), { turn });
  const clients = useResource(`clients ${key}`, groups("client"), { turn });
  const blocked = useResource(`refused ${key}`, (signal) => api.get<ActivityList>("/activity", { ...within(), status: "blocked", type: ["policy_decision"], limit: recent }, signal), { turn });
  const at = carried("activity");
  return (
    <div class="three sec">
      <Part title="Busiest tools" of={tools} rows={(s) => s.groups.filter((g) => g.calls > 0)} nothing="No calls">{(all) => <Busiest all={all} />}</Part>
      <Part title="Recent refusals" of={blocked} rows={(l) => lastRefused(l.activities, most)} nothing="No refused calls" end={!!refused && <a class="end link" href={href("activity", { ...at, status: "blocked", type: "policy_decision" })}>All {number(refused)}</a>}>
        {(all) => (
          <table class="plain refs">
            <caption><span class="vh">Recent refusals</span></caption>
            <tbody>
              {all.map((r) => (
                <tr key={r.id}>
                  <td class="c-t dim"><time dateTime={refusedAt(r)} title={exact(refusedAt(r))}>{clock(refusedAt(r))}</time></td>
                  <td class="c-w"><a href={href("activity", { ...at, status: "blocked", type: "policy_decision", id: r.id })}><ToolName server={r.server_name} tool={r.tool_name} /></a></td>
                  <td class="soft" title={r.error_message}><Visible text={whyRefused(r)} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Part>
      <Part title="Clients" of={clients} rows={(s) => s.groups} nothing="No clients" end={<a class="end link" href={href("clients")}>Connect a client</a>}>
        {(all) => (
          <table class="plain cls">
            <caption><span class="vh">Calls by client</span></caption>
            <tbody>
              {all.slice(0, most).map((g) => (
                <tr key={g.key}>
                  <td>{g.key ? <a href={href("activity", { ...at, client: g.key })}><Visible text={g.key} /></a> : <span class="dim">unnamed</span>}</td>
                  <td class="n">{number(g.calls)}</td>
                  <td class="n dim"><Time at={g.last} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Part>
    </div>
  );
}

function Part<T, R>({ title, of, rows, nothing, end, children }: { title: string; of: Resource<T>; rows: (data: T) => R[]; nothing: string; end?: ComponentChildren; children: (rows: R[]) => ComponentChildren }) {
  return (
    <section>
      <div class="top2"><h2>{title}</h2>{end}</div>
      <Loaded of={of} title={`Could not load ${title.toLowerCase()}`}>
        {(data) => {
          const all = rows(data);
          return all.length ? children(all) : <p class="dim none">{nothing} in this period.</p>;
        }}
      </Loaded>
    </section>
  );
}

function Busiest({ all }: { all: Summary["groups"] }) {
  // The summary by tool has no lanes; the list of tools has them.
  const tools = useResource("lanes of tools", (signal) => api.get<ToolList>("/tools", { sort: "calls", limit: 100 }, signal)).data;
  const at = carried("activity");
  return (
    <table class="plain busy">
      <caption><span class="vh">Busiest tools</span></caption>
      <tbody>
        {all.slice(0, most).map((g) => {
          const t = tools?.tools.find((one) => one.name === g.key);
          const colon = g.key.indexOf(":");
          return (
            <tr key={g.key}>
              <td><a href={href("activity", { ...at, tool: g.key })}><ToolName server={g.key.slice(0, colon)} tool={g.key.slice(colon + 1)} /></a></td>
              <td class="c-l">{t && <Lane lane={t.lane} />}</td>
              <td class="n c-n">{number(g.calls)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
