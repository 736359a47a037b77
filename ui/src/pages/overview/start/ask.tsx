import { useEffect, useState } from "preact/hooks";
import { api, path } from "../../../api/client";
import type { ActivityList, ActivityRecord, Lane as LaneName, Server } from "../../../api/types";
import { useEvents } from "../../../data/live";
import { useResource } from "../../../data/resource";
import { href } from "../../../router";
import { announce } from "../../../ui/announce";
import { Button } from "../../../ui/button";
import { CopyButton } from "../../../ui/copy";
import { Json } from "../../../ui/json";
import { Lane, Outcome, State, ToolName } from "../../../ui/marks";
import { Visible } from "../../../ui/words";
import { took } from "../words";
import { sentence } from "./model";

/** Step 3: a prompt for the agent, and the first record. */
export function Ask({ servers }: { servers: readonly Server[] }) {
  const [id, setId] = useState("");
  // An earlier call counts, too. Requests without a tool, such as unauthenticated ones, do not.
  const before = useResource<ActivityList>("first", (signal) => api.get("/activity", { type: "tool_call,policy_decision", limit: 20 }, signal));
  useEffect(() => {
    const there = before.data?.activities.find((r) => r.tool_name);
    if (there && there.status !== "pending") setId((is) => is || there.id);
  }, [before.data]);
  useEvents((batch) => {
    for (const e of batch) {
      if (e.name === "reset") before.reload();
      else if (e.name === "activity" && e.record.tool_name && (e.kind === "tool_call.completed" || e.kind === "policy_decision")) setId((is) => is || e.record.id);
    }
  });
  const record = useResource<ActivityRecord>(id || null, (signal) => api.get(path`/activity/${id}`, undefined, signal));
  const said = sentence(servers);
  return (
    <div>
      <h2>Call a tool</h2>
      <p>Send this prompt to your agent. The call appears here.</p>
      <div class="say"><span>“<Visible text={said} />”</span><CopyButton text={said} label="Copy prompt" /></div>
      {record.data ? <First of={record.data} /> : servers.length > 0 && <p class="listening" role="status"><State kind="moving">Waiting for the first call</State></p>}
    </div>
  );
}

function First({ of: r }: { of: ActivityRecord }) {
  const text = firstCall(r);
  useEffect(() => announce(text), [text]);
  const lane = r.metadata.intent?.operation_type ?? (r.metadata.tool_variant?.replace("call_tool_", "") as LaneName | undefined);
  return (
    <section class="first" aria-label="First call">
      <p class="strong">{text}</p>
      <p class="row"><ToolName server={r.server_name} tool={r.tool_name} />{lane && <Lane lane={lane} />}<Outcome status={r.status} /></p>
      {r.metadata.intent?.reason && <p class="soft">“<Visible text={r.metadata.intent.reason} />”</p>}
      {r.arguments !== undefined && <Json value={r.arguments} label="arguments" />}
      {r.status === "blocked" && r.error_message && <p><Visible text={r.error_message} /></p>}
      <div class="row go"><Button href={href("activity", { id: r.id })}>View record</Button><Button kind="quiet" href={href("overview")}>Go to overview</Button></div>
    </section>
  );
}

function firstCall(r: ActivityRecord): string {
  if (r.status === "blocked") return "MCPProxy refused the first call and recorded it.";
  const time = `It took ${took(r.duration_ms)}`;
  return r.status === "success" ? `First call recorded. ${time}.` : `First call recorded. It failed. ${time}.`;
}
