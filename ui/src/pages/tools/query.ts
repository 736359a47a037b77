// What the page shows, by the URL, and what REST is asked for.

import type { Params } from "../../api/client";
import type { Lane } from "../../api/types";
import { own } from "../../lib/own";
import { direction, keyOf, ordering, type Order } from "../../lib/order";
import { oneOf, text, type Values } from "../../lib/query";

export const lanes = ["read", "write", "destructive"] as const satisfies readonly Lane[];
export const schema = {
  q: text(), id: text(), lane: oneOf<Lane | "">(["", ...lanes], ""), status: text(), hints: oneOf(["", "said", "corrected", "guessed"], ""),
  use: oneOf(["", "recent", "earlier", "never"], ""), server: text(), sort: ordering(["name", "calls", "last", "tokens"]),
};
export type Query = Values<typeof schema>;

export const facetNames = { lane: "Lane", status: "Can be called", hints: "Hints", use: "Use", server: "Server" } as const;
export type FacetKey = keyof typeof facetNames;
export const facetKeys = Object.keys(facetNames) as FacetKey[];

/** Nothing filtered. */
export const none = { lane: "", status: "", hints: "", use: "", server: "" } as const satisfies Partial<Query>;

const words: Record<string, string> = {
  callable: "yes", pending_approval: "waits for you", blocked: "blocked by you", server_quarantined: "server waits for you", disabled_by_config: "off in the file", disabled_by_user: "off by you",
  server_disabled: "server is off", disabled_unknown: "not known", for_clients: "only for some clients",
  said: "said by the server", corrected: "corrected by you", guessed: "not said, guessed",
  recent: "in the last 30 days", earlier: "longer ago", never: "never",
};

/** Returns what a value of a facet is called; a server by its name. */
export function word(key: FacetKey, value: string): string {
  return key === "server" ? value : (own(words, value) ?? value);
}

/** Returns the filters of GET /tools. */
export function params(q: Query): Params {
  return { operation_type: q.lane, status: q.status, hints: q.hints, use: q.use, server: q.server };
}

/** Returns the order of GET /tools; without one, the most used come first. There, a name comes first from the beginning and anything else from the largest. */
export function orderParams(order: Order): Params {
  const sort = keyOf(order) || "calls";
  const natural = sort === "name" ? "ascending" : "descending";
  return { sort, reverse: order !== "" && direction(order, sort) !== natural ? true : undefined };
}

/** Returns what the list is sorted by, for the line above it. */
export function orderWords(order: Order): string {
  return { name: "by name", tokens: "by tokens", last: "by last use" }[keyOf(order)] ?? "by use";
}

/** Returns the filters as a sentence: "Lane is write, and server is github." */
export function sentence(q: Query): string {
  const parts = facetKeys.filter((k) => q[k]).map((k) => `${facetNames[k]} is ${word(k, q[k])}`);
  return parts.map((p, i) => (i ? p[0]!.toLowerCase() + p.slice(1) : p)).join(", and ") + ".";
}

// In the order in which a person looks at them; what else there is comes last.
const order = [...lanes, "callable", "pending_approval", "blocked", "server_quarantined", "disabled_by_config", "disabled_by_user", "server_disabled", "said", "corrected", "guessed", "recent", "earlier", "never"];

/** Returns the values of a facet with their counts: servers by their number of tools, others in their order. A chosen one is there even when nothing is left of it. */
export function entries(key: FacetKey, counts: Record<string, number>, chosen: string): [string, number][] {
  const all = Object.entries(chosen && own(counts, chosen) === undefined ? { ...counts, [chosen]: 0 } : counts);
  if (key === "server") return all.sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
  const place = (v: string) => (order.indexOf(v) + 1 || 99);
  return all.sort((a, b) => place(a[0]) - place(b[0]));
}

/** Returns the server and the tool of an id: only the first colon parts them. */
export function split(id: string): { server: string; tool: string } | undefined {
  const at = id.indexOf(":");
  return at > 0 && at < id.length - 1 ? { server: id.slice(0, at), tool: id.slice(at + 1) } : undefined;
}
