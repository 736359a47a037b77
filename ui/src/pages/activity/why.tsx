// The caller of a record, and the reason it gave.

import { api } from "../../api/client";
import type { ActivityList, ActivityRecord } from "../../api/types";
import { useResource } from "../../data/resource";
import { count, span } from "../../lib/format";
import { actorWords, surfaceWords } from "../../lib/who";
import { href } from "../../router";
import { DrawerPart } from "../../ui/drawer";
import { Visible } from "../../ui/words";
import { actionWords } from "./row";

/** The reason, caller and session of a call, and the search that found the tool. */
export function Why({ record: r }: { record: ActivityRecord }) {
  const { intent, search } = r.metadata;
  return (
    <DrawerPart title={intent?.reason ? "Reason given by the agent" : "Caller"}>
      {intent?.reason && <p class="quote">“<Visible text={intent.reason} />”</p>}
      <dl class={intent?.reason ? "defs gap" : "defs"}>
        {intent?.data_sensitivity && <><dt>Data sensitivity</dt><dd>{intent.data_sensitivity}</dd></>}
        <By record={r} />
        {r.session_id && <><dt>Session</dt><dd><a class="link mono" href={href("activity", { session: r.session_id, since: "30d" })} title={r.session_id}>{r.session_id.slice(0, 8)}</a> <Calls session={r.session_id} /></dd></>}
        {search && <><dt>Search</dt><dd>“<Visible text={search.query} />”{search.rank ? `, rank ${search.rank}` : ""}</dd></>}
        {intent?.declared !== undefined && <><dt>Declared</dt><dd class="mono"><Visible text={JSON.stringify(intent.declared)} /></dd></>}
        {r.parent_id && <><dt>{r.metadata.decision?.approval ? "Approval record" : "Parent record"}</dt><dd><a class="link mono" href={href("activity", { since: "30d", id: r.parent_id })}>{r.parent_id}</a></dd></>}
      </dl>
    </DrawerPart>
  );
}

/** The details of a record that is not a call. */
export function Change({ record: r }: { record: ActivityRecord }) {
  const { action, detail, redacted } = r.metadata;
  return (
    <DrawerPart title="Summary">
      <p>{sentence(r)}</p>
      <dl class="defs gap">
        {action && <><dt>Action</dt><dd>{actionWords(action)}</dd></>}
        {r.server_name && <><dt>Server</dt><dd><a class="link" href={href("servers", { id: r.server_name })}><Visible text={r.server_name} /></a></dd></>}
        {r.tool_name && <><dt>Tool</dt><dd><a class="link" href={href("tools", { id: `${r.server_name}:${r.tool_name}` })}><Visible text={r.tool_name} /></a></dd></>}
        {detail && <><dt>Detail</dt><dd><Visible text={detail} /></dd></>}
        {redacted && <><dt>Fields</dt><dd>{redacted.fields.join(", ")} of <a class="link mono" href={href("activity", { since: "30d", id: redacted.id })}>{redacted.id}</a></dd></>}
        {r.parent_id && <><dt>Parent record</dt><dd><a class="link mono" href={href("activity", { since: "30d", id: r.parent_id })}>{r.parent_id}</a></dd></>}
        <By record={r} />
      </dl>
    </DrawerPart>
  );
}

// The summary sentence for each type of record.
function sentence(r: ActivityRecord): string {
  const bad = { error: " It failed.", blocked: r.type === "approval" ? "" : " It was refused.", interrupted: " It was interrupted.", pending: " It is running.", held: "", success: "" }[r.status];
  switch (r.type) {
    case "approval": return (r.status === "blocked" ? "An item was held for review or blocked." : "A decision about agent access.") + bad;
    case "server_change": return "A server or its definitions changed." + bad;
    case "config_change": return "The configuration changed." + bad;
    case "presence": return "The presence key was set or changed; its fingerprint is recorded." + bad;
    default: return "An event of MCPProxy itself." + bad;
  }
}

function By({ record: r }: { record: ActivityRecord }) {
  const actor = actorWords(r.actor);
  const rest = [r.client_name ? actor : "", surfaceWords(r.source)].filter(Boolean).join(", ");
  if (!r.client_name && !actor) return null;
  return (
    <>
      <dt>By</dt>
      <dd>
        {r.client_name ? <a class="link" href={href("activity", { client: r.client_name })}><Visible text={[r.client_name, r.client_version].filter(Boolean).join(" ")} /></a> : actor[0]!.toUpperCase() + actor.slice(1)}
        {rest && `, ${rest}`}
      </dd>
    </>
  );
}

// "41 calls in 26 min": from its newest call to its first.
function Calls({ session }: { session: string }) {
  const of = { session_id: session, type: "tool_call,policy_decision", limit: 1 };
  const r = useResource(`session ${session}`, async (signal) => {
    const last = await api.get<ActivityList>("/activity", of, signal);
    const first = last.total > 1 ? await api.get<ActivityList>("/activity", { ...of, offset: last.total - 1 }, signal) : last;
    const ends = [first, last].map((l) => Date.parse(l.activities[0]?.timestamp ?? ""));
    return { calls: last.total, seconds: (ends[1]! - ends[0]!) / 1000 };
  });
  if (!r.data) return null;
  return <span class="dim">{count(r.data.calls, "call")}{r.data.seconds >= 1 && ` in ${span(r.data.seconds)}`}</span>;
}
