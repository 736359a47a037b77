// What the form of a new token says, as REST takes it.

import type { Lane } from "../../api/types";

export const lanes: readonly Lane[] = ["read", "write", "destructive"];

/** The lanes that are ticked for a new token: what it may do besides is said on purpose. */
export const newLanes: readonly Lane[] = ["read"];

/** How long a token can be good, and in words. */
export const lives: readonly (readonly [string, string])[] = [["1d", "a day"], ["7d", "a week"], ["30d", "30 days"], ["90d", "90 days"], ["365d", "a year"], ["", "no end"]];

/** Returns the names and patterns of a text with commas or spaces between. */
export function serverNames(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter(Boolean))];
}

/** Returns why a token cannot be made, or "". */
export function tokenTrouble(name: string, may: readonly Lane[]): string {
  if (!name) return "It needs a name.";
  return may.length === 0 ? "It may do nothing: choose a lane." : "";
}

/** Returns the body for POST /tokens; what does not limit is left out. */
export function bodyOf(f: { name: string; profile: string; servers: string; lanes: readonly Lane[]; life: string }): Record<string, unknown> {
  const servers = serverNames(f.servers);
  return {
    name: f.name, ...(f.profile && { profile: f.profile }), ...(servers.length > 0 && { servers }),
    ...(f.lanes.length < lanes.length && { lanes: f.lanes }), ...(f.life && { expires_in: f.life }),
  };
}
