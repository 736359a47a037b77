// What decided about a call, in words: from the facts in the record, nothing guessed.

import type { ActivityRecord, ArgumentLane, Decision, HintFact, Lane } from "../../api/types";
import { own } from "../../lib/own";

const order = ["name", "intent", "arguments", "scope", "tool_exists", "callable", "hints", "schema"];
const last = ["place", "ask"]; // these come when all others have passed
const checkWords: Record<string, string> = { tool_exists: "tool exists", lane: "what the arguments do", place: "a free place", ask: "a person" };

/** passed is undefined while a person is asked. */
export interface Check { name: string; passed: boolean | undefined }

/** Returns the checks in their order up to the one that refused, or that asks; else all of them. */
export function checks(d: Decision): Check[] {
  const all = d.lane || d.check === "lane" ? [...order, "lane"] : order;
  const pass = (c: string): Check => ({ name: own(checkWords, c) ?? c.replaceAll("_", " "), passed: true });
  if (!d.check) return d.outcome === "refused" ? [] : [...all, ...(d.approval ? ["ask"] : [])].map(pass);
  const at = all.indexOf(d.check);
  const before = at < 0 && !last.includes(d.check) ? [] : all.slice(0, at < 0 ? all.length : at);
  return [...before.map(pass), { ...pass(d.check), passed: d.outcome === "asked" ? undefined : false }];
}

const readAs: Record<ArgumentLane["by"], string> = { sql: "SQL", shell: "a shell line", cli: "a command line", http: "a method of HTTP", graphql: "GraphQL", action: "an action" };

/** Returns what the arguments make of the call, and by which word in which of them. */
export function argumentWords(l: ArgumentLane): string {
  const read = `“${l.argument}”, read as ${own(readAs, l.by) ?? l.by}${l.declared ? ", as the configuration says" : ""}`;
  const why = l.unread ? `${read}, could not be read to its end${l.word ? ` (${l.word})` : ""}` : l.word ? `“${l.word}” in ${read}` : read;
  return `By its arguments it counts as ${l.operation}: ${why}.`;
}

/** Returns the lane that a way to call stands for. */
export function laneOf(variant: string | undefined): Lane | undefined {
  return (["read", "write", "destructive"] as const).find((l) => variant === `call_tool_${l}`);
}

const severity: Record<Lane, number> = { read: 0, write: 1, destructive: 2 };
const sources: Record<HintFact["from"], string> = { server: "The server", override: "The configuration", inferred: "MCPProxy, from its name and description,", default: "" };

// What decided the lane of the tool, and who said so.
function marked(d: Decision, lane: Lane): string {
  const { read_only, destructive } = d.hints ?? {};
  const fact = lane === "read" ? read_only : lane === "destructive" ? destructive : destructive && !destructive.value && destructive.from !== "default" ? destructive : read_only;
  const is = { read: "read-only", write: "as one that changes, but does not destroy", destructive: "destructive" }[lane];
  if (!fact || fact.from === "default") return `Nobody says what the tool does, so it counts as ${lane}`;
  return `${sources[fact.from]} marks the tool ${is}`;
}

/** Returns the sentence after "Allowed." or "Refused.": what the tool is marked as, and how it was called. Empty where the record does not tell. */
export function reasonOf(d: Decision, variant: string | undefined): string {
  const lane = laneOf(d.call_with);
  const called = laneOf(variant);
  if (!lane || !d.hints) return "";
  const said = marked(d, lane);
  if (!called) return said + ".";
  if (called === lane) return `${said}, and it was called so.`;
  return severity[called] > severity[lane] ? `${said}, and it was called as ${called}, which is stricter.` : `${said}, but it was called as ${called}.`;
}

export interface Remedy { text: string; /** A page that helps, and what its link says. */ page?: "approvals" | "tools" | "servers"; id?: string; link?: string }

// By the statuses of the daemon (internal/gate/policy/status.go).
const locks: Record<string, { text: string; page: "approvals" | "tools" | "servers"; link: string }> = {
  pending_approval: { text: "The same call, once you have approved the tool: it is new or has changed.", page: "approvals", link: "Look at it" },
  server_quarantined: { text: "The same call, once you have reviewed and accepted the server.", page: "approvals", link: "Look at it" },
  server_disabled: { text: "The same call, once the server is switched on.", page: "servers", link: "Show the server" },
  disabled_by_user: { text: "The same call, once the tool is switched on again.", page: "tools", link: "Show the tool" },
  disabled_by_config: { text: "Off in the file. Only who edits mcp_config.json can change it.", page: "tools", link: "Show the tool" },
  disabled_unknown: { text: "It is not known why it is off. The server’s log may tell.", page: "servers", link: "Show the server" },
};

/** Returns what would make the same call pass, undefined where nothing in the record tells. */
export function remedy(r: ActivityRecord): Remedy | undefined {
  const d = r.metadata.decision;
  if (r.status !== "blocked" || !d) return undefined;
  const tool = r.server_name && r.tool_name ? `${r.server_name}:${r.tool_name}` : undefined;
  switch (d.check) {
    case "hints":
    case "intent":
      if (d.call_with && d.call_with !== r.metadata.tool_variant) return { text: `The same call with ${d.call_with}, declared as ${laneOf(d.call_with)}.` };
      return d.check === "intent" ? { text: "The same call with an intent that fits the way it is called." } : undefined;
    case "callable": {
      const lock = own(locks, d.status);
      if (!lock) return d.status ? { text: `Its status is ${d.status.replaceAll("_", " ")}; it passes when that has changed.`, ...(tool ? { page: "tools" as const, id: tool, link: "Show the tool" } : {}) } : undefined;
      return { ...lock, ...(lock.page === "servers" ? { id: r.server_name ?? "" } : tool ? { id: tool } : {}) };
    }
    case "schema":
      return { text: "Arguments that fit the tool’s input schema.", ...(tool ? { page: "tools" as const, id: tool, link: "Show the schema" } : {}) };
    case "arguments":
      return { text: "Arguments that are one JSON object." };
    case "name":
    case "tool_exists":
      return { text: "The name of a tool that exists, as server:tool.", page: "tools", link: "Search tools" };
    case "scope":
      return { text: "A caller whose access reaches this server and this kind of call." };
    case "lane":
      return d.lane ? { text: `The same call with call_tool_${d.lane.operation}, declared as ${d.lane.operation}.` } : undefined;
    case "ask":
      if (r.metadata.error_code === "APPROVAL_DENIED") return { text: "Another call: a person has denied this one." };
      return { text: "The same call, once you have allowed it.", page: "approvals", link: "Show what waits" };
    case "place":
      return { text: "The same call when the server has fewer calls to work on." };
  }
  return undefined;
}

/** Returns the hints that counted, as lines. */
export function hintLines(d: Decision): { name: string; value: boolean; from: string }[] {
  const words: Record<HintFact["from"], string> = { server: "the server says so", override: "the configuration says so", inferred: "inferred", default: "nobody says, MCP’s default" };
  const named = { read_only: "Read-only", destructive: "Destructive", idempotent: "Idempotent", open_world: "Open world" } as const;
  return Object.entries(named).flatMap(([key, name]) => {
    const fact = d.hints?.[key as keyof typeof named];
    return fact ? [{ name, value: fact.value, from: own(words, fact.from) ?? fact.from }] : [];
  });
}
