// Approves several definitions in one request.

import { api } from "../api/client";
import type { Problem, WaitingOffer } from "../api/types";

/** A reviewed definition: name is server:name, or the server for instructions; kind is absent for tools. */
export interface Named { name: string; kind?: WaitingOffer["kind"]; fingerprint: string }

// How many the daemon takes in one request.
const atOnce = 500;

/** Approves many definitions, each separately. Returns an error or undefined for each definition, in order. */
export async function approveTogether(all: readonly Named[]): Promise<(Problem | undefined)[]> {
  const out: (Problem | undefined)[] = [];
  for (let i = 0; i < all.length; i += atOnce) {
    const { results } = await api.post<{ results: { problem?: Problem }[] }>("/approvals/approve", { tools: all.slice(i, i + atOnce) });
    out.push(...results.map((r) => r.problem));
  }
  return out;
}
