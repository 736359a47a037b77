// The time range of Overview, Activity and Servers: since and until in the URL. By default it is the shortest one
// that contains all records.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { api } from "../api/client";
import type { ActivityList } from "../api/types";
import { text } from "../lib/query";
import { all, fitting, type Range } from "../lib/range";
import { place, useQuery, type PageName } from "../router";

export const rangePages: readonly (PageName | "")[] = ["overview", "activity", "servers"];

const schema = { since: text(), until: text() };
const day = 86_400_000;

// The time of the oldest record; undefined until it is loaded.
const first = signal<Date | undefined>(undefined);
let asked = false;

async function look(): Promise<void> {
  try {
    const ask = (offset: number) => api.get<ActivityList>("/activity", { limit: 1, offset: offset || undefined });
    const newest = await ask(0);
    const { activities } = newest.total > 1 ? await ask(newest.total - 1) : newest;
    first.value = activities[0] ? new Date(activities[0].timestamp) : new Date();
  } catch {
    first.value = new Date(Date.now() - day); // the page shows that the log cannot be read
  }
}

/** Reports whether the range is known: a range that is not in the URL depends on the oldest record. */
export function useRangeKnown(page: PageName | ""): boolean {
  const { since } = useQuery(schema)[0];
  const needed = rangePages.includes(page) && (since === "" || since === all);
  useEffect(() => {
    if (!needed || asked) return;
    asked = true;
    void look();
  }, [needed]);
  return !needed || first.value !== undefined;
}

/** Returns the range and its setter; an empty since means the default range. */
export function useRange(): [Range, (range: Pick<Range, "since" | "until">) => void] {
  const [q, setQ] = useQuery(schema);
  const oldest = first.value ?? new Date(Date.now() - day);
  const range: Range = q.since === all ? { ...q, first: oldest } : { ...q, since: q.since || fitting(oldest, new Date()) };
  return [range, (r) => setQ({ since: r.since, until: r.until })];
}

/** Returns the parameters that a link to another page needs for the range. */
export function carried(to: PageName): Record<string, string | undefined> {
  if (!rangePages.includes(to) || !rangePages.includes(place.value.page)) return {};
  const q = new URLSearchParams(place.value.search);
  return { since: q.get("since") ?? undefined, until: q.get("until") ?? undefined };
}

