import { useMemo, useReducer, useRef } from "preact/hooks";
import { api } from "../../api/client";
import type { SearchAnswer, ToolList } from "../../api/types";
import { useEvents } from "../../data/live";
import { useResource } from "../../data/resource";
import { useStatus } from "../../data/shared";
import { count } from "../../lib/format";
import { useQuery } from "../../router";
import { FilterBar, type Filter } from "../../ui/chips";
import { Empty, Loaded } from "../../ui/parts";
import { Ask } from "./ask";
import { Facets } from "./facets";
import { Hits } from "./hits";
import { List } from "./list";
import { Locked } from "./locked";
import { entries, facetKeys, facetNames, none, orderWords, params, schema, word, type FacetKey } from "./query";
import { ToolDrawer } from "./tool";
import "./tools.css";

const gather = 1000; // ms between reloads when many tools change

/** The Tools page: all tools, and the search as an agent runs it. */
export default function Tools() {
  const [q, setQ] = useQuery(schema);
  const status = useStatus();
  const [turn, again] = useReducer((n: number, _: void) => n + 1, 0);
  const timer = useRef(0);
  useEvents((batch) => {
    if (batch.some((e) => e.name !== "activity")) timer.current ||= window.setTimeout(() => ((timer.current = 0), again()), gather);
  });

  const asking = q.q !== "";
  const filter = params(asking ? { ...q, ...none, lane: q.lane } : q);
  const facets = useResource("facets" + JSON.stringify(filter), (signal) => api.get<ToolList>("/tools", { ...filter, limit: 1 }, signal), { turn });
  const found = useResource(asking ? `${q.lane} ${q.q}` : null, (signal) =>
    api.get<SearchAnswer>("/tools/search", { q: q.q, operation_type: q.lane, explain: true, include_disabled: true }, signal), { turn });
  const answer = found.data;
  const stale = asking && answer !== undefined && answer.query !== q.q;

  const filters = useMemo<Filter[]>(() => facetKeys.map((key) => ({
    key, name: facetNames[key], values: q[key] ? [q[key]] : [], options: entries(key, facets.data?.facets[key] ?? {}, q[key]).map(([value]) => ({ value, label: word(key, value) })),
  })), [facets.data, q]);
  const choose = (key: string, values: string[]) => setQ({ [key as FacetKey]: values.at(-1) ?? "", id: "" });
  const close = () => setQ({ id: "" });
  const at = asking ? answer?.tools.findIndex((t) => t.name === q.id) ?? -1 : -1;

  return (
    <div class={q.id ? "page fill at-record" : "page fill"}>
      <div class={q.id ? "bench open" : "bench"}>
        <Facets facets={facets.data?.facets} q={q} />
        <div class="mid">
          <Ask q={q} setQ={setQ} status={status.data} answer={answer} stale={stale} />
          {asking ? (
            <Loaded of={found} title="Could not search tools">
              {(a) => (
                <>
                  <div class="locks"><Locked tools={a.locked} onDone={again} key={a.query} /></div>
                  {a.tools.length > 0 ? <Hits answer={a} q={q} /> : <Empty title="No matching tools">Try other words, or the name of the tool.</Empty>}
                </>
              )}
            </Loaded>
          ) : (
            <>
              <FilterBar filters={filters} onChange={choose} onClear={() => setQ({ ...none, id: "" })} saved="tools" end={facets.data && <span class="dim total">{count(facets.data.total, "tool")} {orderWords(q.sort)}</span>} />
              <List q={q} turn={turn} slow={facets.slow} any={(status.data?.tools.total ?? 1) > 0} onOpen={(id) => setQ({ id })} onFilter={(f) => choose(f.key, [f.value])} onClear={() => setQ({ ...none, id: "" })} onOrder={(sort) => setQ({ sort })} onChanged={again} />
            </>
          )}
        </div>
        {q.id && <ToolDrawer id={q.id} turn={turn} hit={at >= 0 && answer ? { place: at + 1, tool: answer.tools[at]! } : undefined} onClose={close} onChanged={again} />}
      </div>
    </div>
  );
}
