// The form of a new token, as a REST request.

import type { Lane } from "../../api/types";

export const lanes: readonly Lane[] = ["read", "write", "destructive"];

/** The lanes that are selected for a new token. */
export const newLanes: readonly Lane[] = ["read"];

/** The lifetimes of a token, and their labels. */
export const lives: readonly (readonly [string, string])[] = [["1d", "1 day"], ["7d", "7 days"], ["30d", "30 days"], ["90d", "90 days"], ["365d", "1 year"], ["", "no expiration"]];

/** Splits a text at commas and spaces into names and patterns. */
export function serverNames(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))];
}

/** Returns why a token cannot be created, or "". */
export function tokenTrouble(name: string, may: readonly Lane[]): string {
  if (!name) return "Enter a name.";
  return may.length === 0 ? "Select at least one lane." : "";
}

/** Returns the body for POST /tokens, without empty limits. */
export function bodyOf(f: { name: string; profile: string; servers: string; lanes: readonly Lane[]; life: string }): Record<string, unknown> {
  const servers = serverNames(f.servers);
  return {
    name: f.name, ...(f.profile && { profile: f.profile }), ...(servers.length > 0 && { servers }),
    ...(f.lanes.length < lanes.length && { lanes: f.lanes }), ...(f.life && { expires_in: f.life }),
  };
}
