// A row of the list, from a REST record or an event.

import type { ActivityRecord, EventRecord, Lane } from "../../api/types";
import { own } from "../../lib/own";
import { actorWords } from "../../lib/who";

export interface Row {
  id: string;
  type: ActivityRecord["type"];
  status: ActivityRecord["status"];
  at: string;
  ms: number;
  server?: string | undefined;
  tool?: string | undefined;
  lane?: Lane | undefined;
  reason?: string | undefined;
  client?: string | undefined;
  session?: string | undefined;
  actor?: string | undefined;
  /** For records other than calls: the action and its object. */
  action?: string | undefined;
  detail?: string | undefined;
  /** The number of equal refusals in this record. */
  times?: number | undefined;
}

export function ofRecord(r: ActivityRecord): Row {
  const { intent, action, detail } = r.metadata;
  return {
    id: r.id, type: r.type, status: r.status, at: r.timestamp, ms: r.duration_ms, server: r.server_name, tool: r.tool_name, lane: intent?.operation_type, reason: intent?.reason,
    client: r.client_name, session: r.session_id, actor: r.actor, action, detail, times: r.repeated,
  };
}

export function ofEvent(e: EventRecord): Row {
  return {
    id: e.id, type: e.type, status: e.status, at: e.timestamp, ms: e.duration_ms ?? 0, server: e.server_name, tool: e.tool_name, lane: e.operation_type, reason: e.reason,
    client: e.client_name, session: e.session_id, actor: e.actor,
  };
}

/** Reports whether the record is a call, sent or refused. */
export function isCall(r: { type: Row["type"] }): boolean {
  return r.type === "tool_call" || r.type === "policy_decision";
}

const says: Record<string, string> = {
  hold_tools: "tools held for review", approve_call: "call approved", deny_call: "call denied", grant_lease: "lease granted", revoke_lease: "lease revoked", redact: "fields erased", accept_tools: "tools accepted", start: "started", stop: "stopped", restart: "restarted", reload: "file reloaded",
};

/** Returns the label of an action: "hold_tools" is "tools held for review". */
export function actionWords(action: string): string {
  return own(says, action) ?? action.replaceAll("_", " ");
}

/** Returns the client, such as "Claude Code", else the actor. */
export function who(r: { client?: string | undefined; actor?: string | undefined }): string {
  return r.client || actorWords(r.actor);
}
