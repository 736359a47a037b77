// Saved filters as this browser stores them: the query of the URL, by page. Pure.

import { stringify } from "./query";

export interface Saved { name: string; search: string }

const most = 50; // per page
export const longest = 60; // characters of a name

/** Returns the filters of a query in a fixed order, without the open item, so that two can be compared. */
export function selecting(search: string): string {
  const params = new URLSearchParams(search);
  params.delete("id");
  params.sort();
  return stringify(params);
}

/** Parses the stored filters of a page; invalid ones are left out. */
export function readSaved(text: string): Saved[] {
  try {
    const all: unknown = JSON.parse(text);
    return Array.isArray(all) ? all.filter((s): s is Saved => typeof s?.name === "string" && typeof s?.search === "string").map(({ name, search }) => ({ name, search: selecting(search) })).slice(0, most) : [];
  } catch {
    return [];
  }
}

/** Returns the list with a filter added under a name; it replaces a filter of the same name. */
export function saved(all: readonly Saved[], name: string, search: string): Saved[] {
  const one = { name: name.trim().slice(0, longest), search: selecting(search) };
  if (!one.name) return [...all];
  return [...all.filter((s) => s.name !== one.name), one].sort((a, b) => a.name.localeCompare(b.name)).slice(0, most);
}
