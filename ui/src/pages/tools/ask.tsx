import { useEffect, useRef, useState } from "preact/hooks";
import type { SearchAnswer, Status } from "../../api/types";
import { count, duration, number, short } from "../../lib/format";
import { Icon } from "../../ui/icon";
import { SearchField } from "../../ui/field";
import { Lane } from "../../ui/marks";
import { Menu } from "../../ui/menu";
import { lanes, type Query } from "./query";

const patience = 120; // ms after the last key

/** The head of the page: the number of tools, and a search as an agent would run it. */
export function Ask({ q, setQ, status, answer, stale }: { q: Query; setQ: (patch: Partial<Query>, options?: { replace?: boolean }) => void; status?: Status; answer?: SearchAnswer; /** The answer is for an earlier query. */ stale: boolean }) {
  const [text, setText] = useState(q.q);
  const timer = useRef(0);
  const asked = useRef(q.q);
  // Back or a link changes the query.
  useEffect(() => {
    if (q.q !== asked.current) setText((asked.current = q.q));
  }, [q.q]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const input = (value: string) => {
    setText(value);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => {
      const next = value.trim();
      if (next === asked.current) return;
      // Only the first letters add a history entry. Agents have no filter except the lane.
      const replace = asked.current !== "" && next !== "";
      asked.current = next;
      setQ({ q: next, id: "", ...(next ? { status: "", hints: "", use: "", server: "" } : {}) }, { replace });
    }, value === "" ? 0 : patience);
  };
  const tools = status?.tools;
  return (
    <div class="ask">
      <h1>{!tools ? "Tools" : tools.total === 0 ? "No tools yet" : `${number(tools.callable)} of ${count(tools.total, "tool")} callable`}</h1>
      <p class="lead">Search as an agent does, and see the results it gets.</p>
      <div class="big" role="search" aria-label="Search as an agent">
        <Icon name="search" />
        <SearchField id="page-search" value={text} onInput={input} label="Describe what the tool should do" placeholder="Describe what the tool should do" />
        <div class="tail">
          <Menu end label={<>{q.lane ? <Lane lane={q.lane} /> : "Any lane"}<Icon name="down" small /></>}>
            <button type="button" role="menuitemradio" aria-checked={q.lane === ""} onClick={() => setQ({ lane: "", id: "" })}>Any lane</button>
            {lanes.map((l) => <button type="button" role="menuitemradio" aria-checked={q.lane === l} key={l} onClick={() => setQ({ lane: l, id: "" })}><Lane lane={l} /></button>)}
          </Menu>
        </div>
      </div>
      {q.q && answer && <Said answer={answer} stale={stale} />}
    </div>
  );
}

function Said({ answer: a, stale }: { answer: SearchAnswer; stale: boolean }) {
  return (
    <div class={stale ? "said stale" : "said"} role="status">
      <span class="grow">{a.total === 0 ? "No matches" : <><b class="strong soft">{number(a.total)}</b> {a.total === 1 ? "match" : "matches"}. An agent gets {a.tools.length === 1 ? "1 tool" : `${a.tools.length} tools`} in {short(a.tokens)} tokens</>}</span>
      <span title={`All definitions: ${short(a.all_tokens)} tokens`}>{duration(a.took_ms)}</span>
    </div>
  );
}
