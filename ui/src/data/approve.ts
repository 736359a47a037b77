// What waits and needs nobody's look of its own, approved together.

import { api } from "../api/client";
import type { Problem, WaitingOffer } from "../api/types";

/** A definition that was seen: server:name, of instructions the server; kind of what is no tool. */
export interface Named { name: string; kind?: WaitingOffer["kind"]; fingerprint: string }

// How many the daemon takes in one request.
const atOnce = 500;

/** Approves many definitions, each by itself. Returns why each was not, in their order: undefined for one that was. */
export async function approveTogether(all: readonly Named[]): Promise<(Problem | undefined)[]> {
  const out: (Problem | undefined)[] = [];
  for (let i = 0; i < all.length; i += atOnce) {
    const { results } = await api.post<{ results: { problem?: Problem }[] }>("/approvals/approve", { tools: all.slice(i, i + atOnce) });
    out.push(...results.map((r) => r.problem));
  }
  return out;
}
