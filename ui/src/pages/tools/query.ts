// The URL parameters of the page, and the REST parameters.

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

export const facetNames = { lane: "Lane", status: "Status", hints: "Hints", use: "Use", server: "Server" } as const;
export type FacetKey = keyof typeof facetNames;
export const facetKeys = Object.keys(facetNames) as FacetKey[];

/** Nothing filtered. */
export const none = { lane: "", status: "", hints: "", use: "", server: "" } as const satisfies Partial<Query>;

const words: Record<string, string> = {
  callable: "callable", pending_approval: "needs review", blocked: "blocked by you", server_quarantined: "server needs review", disabled_by_config: "disabled in file", disabled_by_user: "disabled by you",
  server_disabled: "server disabled", disabled_unknown: "unknown", for_clients: "some clients only",
  said: "declared", corrected: "corrected by you", guessed: "inferred",
  recent: "last 30 days", earlier: "earlier", never: "never",
};

/** Returns the label of a facet value; a server by its name. */
export function word(key: FacetKey, value: string): string {
  return key === "server" ? value : (own(words, value) ?? value);
}

/** Returns the filters of GET /tools. */
export function params(q: Query): Params {
  return { operation_type: q.lane, status: q.status, hints: q.hints, use: q.use, server: q.server };
}

/** Returns the order of GET /tools; by default the most used tools come first. REST sorts names ascending and all else descending. */
export function orderParams(order: Order): Params {
  const sort = keyOf(order) || "calls";
  const natural = sort === "name" ? "ascending" : "descending";
  return { sort, reverse: order !== "" && direction(order, sort) !== natural ? true : undefined };
}

/** Returns the sort order as words, for the line above the list. */
export function orderWords(order: Order): string {
  return { name: "by name", tokens: "by tokens", last: "by last use" }[keyOf(order)] ?? "by use";
}

/** Returns the filters as a sentence: "Lane is write, and server is github." */
export function sentence(q: Query): string {
  const parts = facetKeys.filter((k) => q[k]).map((k) => `${facetNames[k]} is ${word(k, q[k])}`);
  return parts.map((p, i) => (i ? p[0]!.toLowerCase() + p.slice(1) : p)).join(", and ") + ".";
}

// The display order; other values come last.
const order = [...lanes, "callable", "pending_approval", "blocked", "server_quarantined", "disabled_by_config", "disabled_by_user", "server_disabled", "said", "corrected", "guessed", "recent", "earlier", "never"];

/** Returns the values of a facet with their counts: servers by number of tools, others in display order. A selected value is included even if its count is 0. */
export function entries(key: FacetKey, counts: Record<string, number>, chosen: string): [string, number][] {
  const all = Object.entries(chosen && own(counts, chosen) === undefined ? { ...counts, [chosen]: 0 } : counts);
  if (key === "server") return all.sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
  const place = (v: string) => (order.indexOf(v) + 1 || 99);
  return all.sort((a, b) => place(a[0]) - place(b[0]));
}

/** Splits an id into server and tool at the first colon. */
export function split(id: string): { server: string; tool: string } | undefined {
  const at = id.indexOf(":");
  return at > 0 && at < id.length - 1 ? { server: id.slice(0, at), tool: id.slice(at + 1) } : undefined;
}
