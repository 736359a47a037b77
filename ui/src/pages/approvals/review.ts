// The review of a server before it is approved, from GET /servers/{name}/review.

import { api, path } from "../../api/client";
import type { Finding, LaunchView, Verdict } from "../../api/types";
import type { DefinitionItem } from "./model";

export interface Reviewed { fingerprint: string; status?: string; reason?: "new" | "changed" | "blocked"; definition: unknown; verdict: Verdict | "incomplete"; findings: Finding[] }
export interface ReviewedTool extends Reviewed { tool: string }
export interface ReviewedOffer extends Reviewed { kind: "prompt" | "resource" | "template" | "instructions"; name?: string }

export interface Review {
  name: string; stage: "launch" | "definitions" | "approved"; notice?: string; fingerprint: string; launch: LaunchView;
  proposed_by?: string; proposed_at?: string; proposed_env?: Record<string, string>; launch_approved_by?: string; launch_approved_at?: string;
  state: string; last_error?: string; listed: boolean; instructions?: string; verdict: Verdict | "incomplete"; findings: Finding[];
  tools: ReviewedTool[]; offers: ReviewedOffer[]; total_offers: number;
}

export const getReview = (name: string, signal?: AbortSignal) => api.get<Review>(path`/servers/${name}/review`, {}, signal);

/** One definition of a review. */
export interface Definition extends Reviewed { key: string; kind: DefinitionItem["kind"]; name: string }

/** Returns the definitions of a review, the most severe first; instructions are shown separately. */
export function definitions(r: Review): Definition[] {
  const all: Definition[] = [
    ...r.tools.map((t) => ({ ...t, kind: "tool" as const, name: t.tool, key: "tool " + t.tool })),
    ...r.offers.filter((o) => o.kind !== "instructions").map((o) => ({ ...o, name: o.name ?? "", key: `${o.kind} ${o.name}` })),
  ];
  const rank = (d: Definition) => ({ block: 0, review: 1, incomplete: 1, clean: 2 })[d.verdict];
  return all.sort((a, b) => rank(a) - rank(b));
}

/** Returns the most severe verdict in a review. */
export function gravest(r: Review): Review["verdict"] {
  const all = [r.verdict, ...r.tools.map((t) => t.verdict), ...r.offers.map((o) => o.verdict)];
  return all.includes("block") ? "block" : all.includes("incomplete") ? "incomplete" : all.includes("review") ? "review" : "clean";
}
