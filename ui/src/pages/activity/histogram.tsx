import type { Summary } from "../../api/types";
import { count, number } from "../../lib/format";
import { Chart } from "../../ui/chart";
import { lanes, type Filters } from "./filters";

/** Returns the buckets to draw: lanes from under, which ignores the lane filter; refused and failed from fit. */
export function merged(under: Summary, fit: Summary | undefined): Summary["buckets"] {
  if (!fit || fit === under) return under.buckets;
  const by = new Map(fit.buckets.map((b) => [b.start, b]));
  return under.buckets.map((b) => ({ ...b, refused: by.get(b.start)?.refused ?? 0, failed: by.get(b.start)?.failed ?? 0 }));
}

/** Calls over time. Dragging over a span, or clicking a bar, sets the time range. */
export function Histogram({ under, buckets, filters, table, onRange }: { under: Summary | undefined; buckets: Summary["buckets"]; filters: Filters; table: boolean; onRange: (from: Date, to: Date) => void }) {
  if (!under) return <div class="hist" />;
  const shown = filters.lane.length ? lanes.filter((l) => filters.lane.includes(l)) : undefined;
  const summary = `${count(under.calls, "call")}, ${number(under.refused)} refused, ${number(under.failed)} failed. Set the time range in the top bar.`;
  return (
    <div class="hist">
      <Chart small height={66} buckets={buckets} step={under.step_seconds} summary={summary} asTable={table} onRange={onRange} onBucket={onRange} {...(shown ? { lanes: shown } : {})} />
    </div>
  );
}
