import { useEffect, useRef, useState } from "preact/hooks";
import type { SearchAnswer, Status } from "../../api/types";
import { count, duration, number, short } from "../../lib/format";
import { Icon } from "../../ui/icon";
import { SearchField } from "../../ui/field";
import { Lane } from "../../ui/marks";
import { Menu } from "../../ui/menu";
import { lanes, type Query } from "./query";

const patience = 120; // ms after the last key

/** The head of the page: how many there are, and the question that an agent would ask. */
export function Ask({ q, setQ, status, answer, stale }: { q: Query; setQ: (patch: Partial<Query>, options?: { replace?: boolean }) => void; status?: Status; answer?: SearchAnswer; /** The answer is of an earlier question. */ stale: boolean }) {
  const [text, setText] = useState(q.q);
  const timer = useRef(0);
  const asked = useRef(q.q);
  // Back, or a link, changes what is asked.
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
      // The first letters are a step, the others are not; filters but the lane do not count for an agent.
      const replace = asked.current !== "" && next !== "";
      asked.current = next;
      setQ({ q: next, id: "", ...(next ? { status: "", hints: "", use: "", server: "" } : {}) }, { replace });
    }, value === "" ? 0 : patience);
  };
  const tools = status?.tools;
  return (
    <div class="ask">
      <h1>{!tools ? "Tools" : tools.total === 0 ? "No tools yet" : `${number(tools.callable)} of ${count(tools.total, "tool")} can be called`}</h1>
      <p class="lead">Ask as an agent would, and see what it gets.</p>
      <div class="big" role="search" aria-label="Ask as an agent">
        <Icon name="search" />
        <SearchField id="page-search" value={text} onInput={input} label="What the tool should do" placeholder="What the tool should do" />
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
      <span class="grow">{a.total === 0 ? "None fits" : <><b class="strong soft">{number(a.total)}</b> {a.total === 1 ? "fits" : "fit"}, an agent gets {a.tools.length === 1 ? "this one" : `these ${a.tools.length}`} in {short(a.tokens)} tokens</>}</span>
      <span title={`All definitions would be ${short(a.all_tokens)} tokens`}>{duration(a.took_ms)}</span>
    </div>
  );
}
