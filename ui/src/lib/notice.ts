// The text of a notification of the browser. Pure.

import type { EventRecord } from "../api/types";

const most = 64; // characters of a name

// Only letters, digits and -_. stay: a name is a server's text.
function clean(name: string): string {
  const all = [...name];
  return all.slice(0, most).map((c) => (/[\p{L}\p{Nd}_.-]/u.test(c) ? c : "?")).join("") + (all.length > most ? "…" : "");
}

/** Returns the text of a notification, or "" if the record needs none. It has names only. */
export function noticeText(r: EventRecord): string {
  const name = [r.server_name, r.tool_name].flatMap((n) => (n ? [clean(n)] : [])).join(":");
  if (r.type === "tool_call" && r.status === "held") return `A call waits for your approval: ${name}`;
  if (r.type === "approval" && r.status === "blocked" && !r.error_code) return `New or changed definitions wait for your review: ${name}`;
  if (r.type === "server_change" && r.error_code === "LOGIN_NEEDED") return `A server needs a login: ${name}`;
  return "";
}
