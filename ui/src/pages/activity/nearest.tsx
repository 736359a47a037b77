// The empty states: nothing was ever recorded, or nothing matches.

import { api } from "../../api/client";
import type { ActivityList } from "../../api/types";
import { useResource } from "../../data/resource";
import { useStatus } from "../../data/shared";
import { now } from "../../data/now";
import { count } from "../../lib/format";
import { label, periodMs, within, type Range } from "../../lib/range";
import { CopyButton } from "../../ui/copy";
import { Empty, NothingFits } from "../../ui/parts";
import { isEmpty, params, sentence, type Filters } from "./filters";
import { reach } from "./times";

export interface Near { range: Range; total: number }

async function near(filters: Filters, signal: AbortSignal): Promise<Near | null> {
  const newest = await api.get<ActivityList>("/activity", { ...params(filters), limit: 1 }, signal);
  const at = newest.activities[0]?.timestamp;
  if (!at) return null;
  const range = reach(new Date(at), new Date());
  const start_time = periodMs(range.since) ? new Date(Date.now() - periodMs(range.since)).toISOString() : range.since;
  const there = await api.get<ActivityList>("/activity", { ...params(filters), start_time, end_time: range.until || undefined, limit: 1 } as never, signal);
  return { range, total: there.total };
}

export function Nothing({ filters, range, onRange, onClear }: { filters: Filters; range: Range; onRange: (r: Range) => void; onClear: () => void }) {
  const found = useResource(JSON.stringify([filters, range]), (signal) => near(filters, signal));
  if (found.loading && !found.data) return null;
  const bare = isEmpty(filters);
  if (bare && !found.data) return <Listening />;
  const to = found.data?.range;
  const period = within(range, now.value);
  const text = bare ? `No records ${period}.` : `${sentence(filters)}, ${period}.`;
  const there = to && `There ${found.data!.total === 1 ? "is" : "are"} ${count(found.data!.total, "record").replace(/ records?$/, "")} ${within(to, now.value)}.`;
  return (
    <NothingFits what={bare ? "No activity in this period" : "No records match these filters"} filters={text} onClear={onClear}
      {...(to && there ? { nearest: { text: there, label: label(to, now.value) }, onNearest: () => onRange(to) } : {})} />
  );
}

/** Before the first call. */
export function Listening() {
  const address = useStatus().data?.surfaces.find((s) => s.name === "mcp")?.address;
  return (
    <Empty title="Waiting for the first call" acts={address && <span class="addr"><code>{address}</code><CopyButton text={address} label="Copy address" /></span>}>
      Connect a client to this address and call a tool. The call appears here.
    </Empty>
  );
}
