// The items that need review as one ordered list: calls, servers, changed, new and blocked definitions.

import type { Finding, Lane, LaunchView, PendingCall, Verdict, Waiting, WaitingServer, WaitingTool } from "../../api/types";
import { count } from "../../lib/format";
import { own } from "../../lib/own";

export const offerKinds = ["prompt", "resource", "template", "instructions"] as const;
export type OfferKind = (typeof offerKinds)[number];

/** A definition that needs review: of a tool, prompt, resource, template or instructions. */
export interface DefinitionItem {
  key: string;
  kind: "tool" | OfferKind;
  server: string;
  /** Empty for instructions. */
  name: string;
  reason: WaitingTool["reason"];
  fingerprint: string;
  approved?: string;
  /** It can be approved together with others. */
  together?: boolean;
  verdict: Verdict | "incomplete";
  findings: readonly Finding[];
  loosened: readonly string[];
  lane?: Lane;
  guessed?: boolean;
  since?: string;
  what?: WaitingTool["what"];
}

/** A server whose launch or definitions need review; stage "approved" is one whose approvals were lost. */
export interface ServerItem {
  key: string;
  kind: "server";
  server: string;
  stage: "launch" | "definitions" | "approved";
  fingerprint: string;
  since?: string;
  findings: number;
  toolCount: number;
  offerCount: number;
  proposedBy?: string;
  client?: string;
  session?: string;
  launch?: LaunchView;
}

/** A call that is held until a user answers. */
export interface CallItem {
  key: string;
  kind: "call";
  server: string;
  name: string;
  since: string;
  call: PendingCall;
}

export type Item = DefinitionItem | ServerItem | CallItem;

/** Reports whether the item is a definition, and not a server or a call. */
export function isDefinition(i: Item): i is DefinitionItem {
  return i.kind !== "server" && i.kind !== "call";
}

/** Returns the key of an item; the URL has it as kind and id. */
export function keyOf(kind: Item["kind"], id: string): string {
  return `${kind} ${id}`;
}

/** Returns the id for the URL: "github:create_issue", "task-master"; a call has its own id. */
export function idOf(item: Pick<Item, "kind" | "server"> & { name?: string; call?: PendingCall }): string {
  if (item.call) return item.call.id;
  return item.name ? `${item.server}:${item.name}` : item.server;
}

/** Parses kind and id of the URL; a tool id contains a colon, a server name does not. The name of a call is its id. */
export function itemAt(kind: OfferKind | "call" | "", id: string): { key: string; kind: Item["kind"]; server: string; name: string } | undefined {
  if (!id) return undefined;
  if (kind === "call") return { key: keyOf(kind, id), kind, server: "", name: id };
  const colon = id.indexOf(":");
  const of = kind || (colon < 0 ? "server" : "tool");
  const whole = colon < 0 || of === "server" || of === "instructions";
  return { key: keyOf(of, id), kind: of, server: whole ? id : id.slice(0, colon), name: whole ? "" : id.slice(colon + 1) };
}

/** Returns the items of an answer, in its order. */
export function itemsOf(w: Waiting, pending: readonly PendingCall[] = []): Item[] {
  const calls = pending.map((call): CallItem => ({ key: keyOf("call", call.id), kind: "call", server: call.server, name: call.tool, since: call.asked_at, call }));
  const servers = w.servers.map(fromServer);
  const lost: ServerItem[] = (w.forgotten ?? []).filter((f) => !servers.some((s) => s.server === f.name)).map((f) => ({
    key: keyOf("server", f.name), kind: "server", server: f.name, stage: "approved", fingerprint: "", findings: 0, toolCount: f.tools, offerCount: f.offers,
  }));
  const tools = w.tools.map((t): DefinitionItem => ({ ...t, key: keyOf("tool", t.name), kind: "tool", name: t.tool, loosened: t.loosened ?? [] }));
  const offers = w.offers.map((o): DefinitionItem => {
    const name = o.name ?? "";
    const reason = o.reason as DefinitionItem["reason"];
    return { ...o, reason, name, loosened: [], key: keyOf(o.kind, idOf({ kind: o.kind, server: o.server, name })) };
  });
  return [...calls, ...servers, ...lost, ...tools, ...offers];
}

function fromServer(s: WaitingServer): ServerItem {
  return {
    key: keyOf("server", s.name), kind: "server", server: s.name, stage: s.stage, fingerprint: s.fingerprint, since: s.since ?? s.proposed_at, findings: s.findings,
    toolCount: s.tool_count, offerCount: s.offer_count, proposedBy: s.proposed_by, client: s.client_name, session: s.session_id, launch: s.launch,
  };
}

export type Show = "all" | "findings" | "clean";

/** Reports whether the daemon allows approving it together with others. */
export function isClean(i: Item): i is DefinitionItem {
  return isDefinition(i) && !!i.together;
}

export function hasFindings(i: Item): boolean {
  return isDefinition(i) ? i.findings.length > 0 || i.verdict !== "clean" : i.kind === "server" && i.findings > 0;
}

export function fits(i: Item, show: Show): boolean {
  return show === "all" || (show === "findings" ? hasFindings(i) : isClean(i));
}

/** Reports whether the item needs a decision; a blocked one does not. */
export function waits(i: Item): boolean {
  return isDefinition(i) ? i.reason !== "blocked" : i.kind === "call" || i.stage !== "approved";
}

/** Returns the rules that found something in a definition, joined; "" for none. Definitions with the same rules can be decided together. */
export function foundIn(i: Item): string {
  return isDefinition(i) && waits(i) ? [...new Set(i.findings.map((f) => f.rule))].sort().join("+") : "";
}

export interface Alike { found: string; reason: string; count: number }

/** Returns the findings that several definitions share, the most frequent first. */
export function alike(items: readonly Item[]): Alike[] {
  const by = new Map<string, Alike>();
  for (const i of items) {
    const found = foundIn(i);
    if (!found || !isDefinition(i)) continue;
    const one = by.get(found);
    if (one) one.count++;
    else by.set(found, { found, reason: [...new Set(i.findings.map((f) => f.reason))].join(", and "), count: 1 });
  }
  return [...by.values()].filter((a) => a.count > 1).sort((a, b) => b.count - a.count);
}

/** Reports whether it can be approved together with others that have the same finding. Likely attacks and relaxed hints are reviewed one by one. */
export function approvable(i: Item): i is DefinitionItem {
  return isDefinition(i) && waits(i) && i.verdict !== "block" && i.verdict !== "incomplete" && i.loosened.length === 0;
}

export interface Section { title: string; items: readonly Item[]; closed?: boolean }

/** Returns the sections of the inbox, each sorted by severity. Empty ones are left out. */
export function sections(items: readonly Item[]): Section[] {
  const of = (reason: DefinitionItem["reason"]) => items.filter(isDefinition).filter((i) => i.reason === reason).sort((a, b) => gravity(a) - gravity(b));
  const all: Section[] = [
    { title: "Pending calls", items: items.filter((i) => i.kind === "call") },
    { title: "Servers", items: items.filter((i) => i.kind === "server") },
    { title: "Changed since approval", items: of("changed") },
    { title: "New", items: of("new") },
    { title: "Blocked", items: of("blocked"), closed: true },
  ];
  return all.filter((s) => s.items.length > 0);
}

function gravity(i: DefinitionItem): number {
  if (i.verdict === "block") return 0;
  if (i.loosened.length > 0) return 1;
  return i.verdict === "clean" ? 3 : 2;
}

/** A section with this many items groups them by server. */
export const foldFrom = 40;

export interface Group { server: string; items: readonly Item[] }

/** Returns the items of a section by server; undefined if they are few enough to list one by one. */
export function grouped(items: readonly Item[]): Group[] | undefined {
  if (items.length < foldFrom || items[0]?.kind === "server") return undefined;
  const by = new Map<string, Item[]>();
  for (const i of items) {
    const list = by.get(i.server);
    if (list) list.push(i);
    else by.set(i.server, [i]);
  }
  return [...by].map(([server, list]) => ({ server, items: list }));
}

/** Returns all items in the order of the list, which j and k follow. */
export function ordered(list: readonly Section[]): Item[] {
  return list.flatMap((s) => grouped(s.items)?.flatMap((g) => g.items) ?? s.items);
}

/** Returns the second line of a row: what to review. */
export function why(i: Exclude<Item, CallItem>): string {
  if (i.kind === "server") {
    if (i.stage === "approved") return `Approvals lost: ${count(i.toolCount, "tool")} to review`;
    if (i.stage === "definitions") return `${count(i.toolCount, "tool")}, running for review`;
    return i.proposedBy || i.client ? `Proposed by ${i.client || i.proposedBy}, not started` : "Not started";
  }
  if (i.loosened.includes("destructiveHint")) return "No longer marked destructive";
  if (i.loosened.includes("readOnlyHint")) return "Now marked read-only";
  if (i.loosened.length > 0) return "Hints relaxed";
  const parts: string[] = [];
  if (i.what?.description) parts.push(i.what.parameters ? "description" : `description, ${count(Math.max(i.what.description.added, i.what.description.removed), "word")}`);
  if (i.what?.parameters) parts.push(count(i.what.parameters, "parameter"));
  if (i.what?.hints) parts.push("hints");
  parts.push(...(i.what?.other ?? []).map((m) => own(others, m) ?? m));
  const text = parts.join(", ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const others: Record<string, string> = { inputSchema: "input schema", outputSchema: "output schema", annotations: "annotations", _meta: "metadata", execution: "execution" };
