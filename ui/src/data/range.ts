// The time range of Overview, Activity and Servers: since and until in the URL.

import { text } from "../lib/query";
import type { Range } from "../lib/range";
import { place, useQuery, type PageName } from "../router";

export const rangePages: readonly (PageName | "")[] = ["overview", "activity", "servers"];

const schema = { since: text("24h"), until: text() };

/** Returns the range and a function that sets it. */
export function useRange(): [Range, (range: Range) => void] {
  const [q, setQ] = useQuery(schema);
  return [q, (r) => setQ({ since: r.since, until: r.until })];
}

/** Returns the parameters that a link to another page with a range has to carry. */
export function carried(to: PageName): Record<string, string | undefined> {
  if (!rangePages.includes(to) || !rangePages.includes(place.value.page)) return {};
  const q = new URLSearchParams(place.value.search);
  return { since: q.get("since") ?? undefined, until: q.get("until") ?? undefined };
}

