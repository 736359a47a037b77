// The REST routes of definitions and servers under review, and the decisions about them.

import { api, path } from "../../api/client";
import type { Piece, ToolDiff } from "../../api/types";
import { approveTogether } from "../../data/approve";
import { each } from "../../data/each";
import { idOf, type DefinitionItem, type Item } from "./model";

/** A definition compared with the approved one: a tool, prompt, resource, template or instructions. */
export type Diff = Omit<ToolDiff, "name" | "tool"> & { name?: string; words?: Piece[] };

/** Identifies a definition in a route. */
export interface Target { kind: Exclude<Item["kind"], "call">; server: string; name: string }

export function routeOf(t: Target): string {
  switch (t.kind) {
    case "server": return path`/servers/${t.server}`;
    case "instructions": return path`/servers/${t.server}/instructions`;
    default: return path`/servers/${t.server}/` + t.kind + path`s/${t.name}`;
  }
}

export const getDiff = (t: Target, signal?: AbortSignal) => api.get<Diff>(routeOf(t) + "/diff", {}, signal);

export type Verb = "approve" | "block" | "unblock" | "withdraw";

/** Sends a decision about the definition with this fingerprint; keep also marks the tool destructive in the configuration. */
export function decide(t: Target, verb: Verb, fingerprint: string, keep = false): Promise<unknown> {
  return api.post(`${routeOf(t)}/${verb}`, { fingerprint, ...(keep ? { keep: "destructive" } : {}) });
}

/** Approves several definitions; returns the approved ones, and the errors of the others. */
export async function approveMany(items: readonly DefinitionItem[]): Promise<{ done: DefinitionItem[]; problems: string[] }> {
  const refused = await approveTogether(items.map((i) => ({ name: idOf(i), kind: i.kind === "tool" ? undefined : i.kind, fingerprint: i.fingerprint })));
  return { done: items.filter((_, k) => !refused[k]), problems: refused.flatMap((p) => p?.detail ?? []) };
}

/** Undoes several decisions: approvals or blocks. */
export async function takeBackMany(items: readonly DefinitionItem[], verb: "withdraw" | "unblock" = "withdraw"): Promise<void> {
  const { problems } = await each(items, (i) => decide(i, verb, i.fingerprint));
  if (problems.length) throw new Error(problems[0]);
}
