// The decision about a call as text, from the facts in the record.

import type { ActivityRecord, ArgumentLane, Decision, HintFact, Lane } from "../../api/types";
import { own } from "../../lib/own";

const order = ["name", "intent", "arguments", "scope", "tool_exists", "callable", "hints", "schema"];
const last = ["place", "ask"]; // these follow all other checks
const checkWords: Record<string, string> = { tool_exists: "tool exists", lane: "argument lane", place: "queue limit", ask: "approval" };

/** passed is undefined while approval is pending. */
export interface Check { name: string; passed: boolean | undefined }

/** Returns the checks in order up to the one that refused or asks; else all of them. */
export function checks(d: Decision): Check[] {
  const all = d.lane || d.check === "lane" ? [...order, "lane"] : order;
  const pass = (c: string): Check => ({ name: own(checkWords, c) ?? c.replaceAll("_", " "), passed: true });
  if (!d.check) return d.outcome === "refused" ? [] : [...all, ...(d.approval ? ["ask"] : [])].map(pass);
  const at = all.indexOf(d.check);
  const before = at < 0 && !last.includes(d.check) ? [] : all.slice(0, at < 0 ? all.length : at);
  return [...before.map(pass), { ...pass(d.check), passed: d.outcome === "asked" ? undefined : false }];
}

const readAs: Record<ArgumentLane["by"], string> = { sql: "SQL", shell: "a shell command", cli: "a command line", http: "an HTTP method", graphql: "GraphQL", action: "an action" };

/** Returns the lane by the arguments, with the word and the argument that decided. */
export function argumentWords(l: ArgumentLane): string {
  const read = `“${l.argument}”, read as ${own(readAs, l.by) ?? l.by}${l.declared ? ", set in the configuration" : ""}`;
  const why = l.unread ? `${read}, could not be parsed completely${l.word ? ` (${l.word})` : ""}` : l.word ? `“${l.word}” in ${read}` : read;
  return `By its arguments the call is ${l.operation}: ${why}.`;
}

/** Returns the lane of a calling tool. */
export function laneOf(variant: string | undefined): Lane | undefined {
  return (["read", "write", "destructive"] as const).find((l) => variant === `call_tool_${l}`);
}

const severity: Record<Lane, number> = { read: 0, write: 1, destructive: 2 };
const sources: Record<HintFact["from"], string> = { server: "The server", override: "The configuration", sandbox: "The sandbox of the server", inferred: "MCPProxy, from its name and description,", default: "" };

// The lane of the tool, and the source of the hint that decided it.
function marked(d: Decision, lane: Lane): string {
  const { read_only, destructive } = d.hints ?? {};
  const fact = lane === "read" ? read_only : lane === "destructive" ? destructive : destructive && !destructive.value && destructive.from !== "default" ? destructive : read_only;
  const is = { read: "read-only", write: "not read-only and not destructive", destructive: "destructive" }[lane];
  if (!fact || fact.from === "default") return `The tool has no hints, so its lane is ${lane}`;
  return `${sources[fact.from]} marks the tool ${is}`;
}

/** Returns the sentence after "Allowed." or "Refused.": the lane of the tool, and the lane of the call. Empty if the record does not have them. */
export function reasonOf(d: Decision, variant: string | undefined): string {
  const lane = laneOf(d.call_with);
  const called = laneOf(variant);
  if (!lane || !d.hints) return "";
  const said = marked(d, lane);
  if (!called) return said + ".";
  if (called === lane) return `${said}. It was called as ${called}.`;
  return severity[called] > severity[lane] ? `${said}. It was called as ${called}, which is stricter.` : `${said}, but it was called as ${called}.`;
}

export interface Remedy { text: string; /** A page that helps, and the text of its link. */ page?: "approvals" | "tools" | "servers"; id?: string; link?: string }

// By status (internal/gate/policy/status.go).
const locks: Record<string, { text: string; page: "approvals" | "tools" | "servers"; link: string }> = {
  pending_approval: { text: "Approve the tool: it is new or changed. Then repeat the call.", page: "approvals", link: "Review" },
  server_quarantined: { text: "Approve the server, then repeat the call.", page: "approvals", link: "Review" },
  server_disabled: { text: "Enable the server, then repeat the call.", page: "servers", link: "View server" },
  disabled_by_user: { text: "Enable the tool, then repeat the call.", page: "tools", link: "View tool" },
  disabled_by_config: { text: "Enable the tool in mcp_config.json.", page: "tools", link: "View tool" },
  disabled_unknown: { text: "The reason is unknown. See the log of the server.", page: "servers", link: "View server" },
};

/** Returns how to allow the same call; undefined if the record does not say. */
export function remedy(r: ActivityRecord): Remedy | undefined {
  const d = r.metadata.decision;
  if (r.status !== "blocked" || !d) return undefined;
  const tool = r.server_name && r.tool_name ? `${r.server_name}:${r.tool_name}` : undefined;
  switch (d.check) {
    case "hints":
    case "intent":
      if (d.call_with && d.call_with !== r.metadata.tool_variant) return { text: `Call it with ${d.call_with} and operation type ${laneOf(d.call_with)}.` };
      return d.check === "intent" ? { text: "Declare an intent that matches the calling tool." } : undefined;
    case "callable": {
      const lock = own(locks, d.status);
      if (!lock) return d.status ? { text: `The tool has the status ${d.status.replaceAll("_", " ")}.`, ...(tool ? { page: "tools" as const, id: tool, link: "View tool" } : {}) } : undefined;
      return { ...lock, ...(lock.page === "servers" ? { id: r.server_name ?? "" } : tool ? { id: tool } : {}) };
    }
    case "schema":
      return { text: "Pass arguments that match the input schema.", ...(tool ? { page: "tools" as const, id: tool, link: "View schema" } : {}) };
    case "arguments":
      return { text: "Pass the arguments as one JSON object." };
    case "name":
    case "tool_exists":
      return { text: "Use the name of an existing tool, as server:tool.", page: "tools", link: "Search tools" };
    case "scope":
      return { text: "Use a token with access to this server and lane." };
    case "lane":
      return d.lane ? { text: `Call it with call_tool_${d.lane.operation} and operation type ${d.lane.operation}.` } : undefined;
    case "ask":
      if (r.metadata.error_code === "APPROVAL_DENIED") return { text: "A user denied this call. It cannot be repeated for 15 minutes." };
      return { text: "Approve the call, then repeat it.", page: "approvals", link: "View approvals" };
    case "pause":
      return { text: "Resume calls, then repeat the call." };
    case "place":
      return { text: "Repeat the call when the server is less busy." };
  }
  return undefined;
}

/** Returns the effective hints, as lines. */
export function hintLines(d: Decision): { name: string; value: boolean; from: string }[] {
  const words: Record<HintFact["from"], string> = { server: "server", override: "configuration", sandbox: "sandbox", inferred: "inferred", default: "MCP default" };
  const named = { read_only: "Read-only", destructive: "Destructive", idempotent: "Idempotent", open_world: "Open world" } as const;
  return Object.entries(named).flatMap(([key, name]) => {
    const fact = d.hints?.[key as keyof typeof named];
    return fact ? [{ name, value: fact.value, from: own(words, fact.from) ?? fact.from }] : [];
  });
}
