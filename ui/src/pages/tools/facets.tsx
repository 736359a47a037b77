import { useState } from "preact/hooks";
import type { ToolList } from "../../api/types";
import { number } from "../../lib/format";
import { own } from "../../lib/own";
import { write } from "../../lib/query";
import { href, search } from "../../router";
import { Lane, State, type StateKind } from "../../ui/marks";
import { Visible } from "../../ui/words";
import { entries, facetKeys, facetNames, lanes, schema, word, type FacetKey, type Query } from "./query";

const few = 5;

/** The filters on the left, as links; the active one removes itself. With a query only the lane applies; the others clear the query. */
export function Facets({ facets, q }: { facets?: ToolList["facets"]; q: Query }) {
  return (
    <nav class="facets" aria-label="Filters">
      {facetKeys.map((key) => <Facet key={key} name={key} counts={facets?.[key] ?? {}} q={q} />)}
    </nav>
  );
}

function Facet({ name, counts, q }: { name: FacetKey; counts: Record<string, number>; q: Query }) {
  const [all, setAll] = useState(false);
  const chosen = q.q && name !== "lane" ? "" : q[name];
  const list = entries(name, counts, chosen);
  if (list.length === 0) return null;
  const shown = name === "server" && !all ? list.filter(([v], i) => i < few || v === chosen) : list;
  return (
    <>
      <h2>{facetNames[name]}</h2>
      <ul>
        {shown.map(([value, n]) => (
          <li key={value}>
            <a href={address(name, value === chosen ? "" : value, q)} aria-current={value === chosen ? "true" : undefined}>
              <Word name={name} value={value} /><span class="num">{number(n)}</span>
            </a>
          </li>
        ))}
        {shown.length < list.length && <li><button type="button" class="more-of" onClick={() => setAll(true)}>{list.length - shown.length} more</button></li>}
      </ul>
    </>
  );
}

function address(name: FacetKey, value: string, q: Query): string {
  return href("tools") + write(schema, search.value, { [name]: value, id: "", ...(q.q && name !== "lane" ? { q: "" } : {}) });
}

const states: Record<string, StateKind> = { callable: "ready", pending_approval: "wait", server_quarantined: "wait" };

function Word({ name, value }: { name: FacetKey; value: string }) {
  if (name === "lane") {
    const lane = lanes.find((l) => l === value);
    return lane ? <Lane lane={lane} /> : <>{value}</>;
  }
  if (name === "status") return <State kind={own(states, value) ?? "off"}>{word(name, value)}</State>;
  return <span class="cut"><Visible text={word(name, value)} /></span>;
}
