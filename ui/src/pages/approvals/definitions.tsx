// The second stage of a server's review: its instructions and definitions.

import { useState } from "preact/hooks";
import { useResource } from "../../data/resource";
import { useServers } from "../../data/shared";
import { cause } from "../../lib/failure";
import { count, spelled } from "../../lib/format";
import { Button } from "../../ui/button";
import { Lane, Tag } from "../../ui/marks";
import { ErrorPart, Skeleton } from "../../ui/parts";
import { FindingList, numbered, Visible, Words } from "../../ui/words";
import { Body, lanesOf } from "./body";
import { getDiff, routeOf, type Target } from "./decide";
import { laneOf, object } from "./definition";
import { Part, VerdictBox } from "./parts";
import { definitions, type Definition, type Review } from "./review";

const step = 100;

export function Definitions({ review }: { review: Review }) {
  const [shown, setShown] = useState(step);
  const [open, setOpen] = useState("");
  const trouble = useServers().data?.find((s) => s.name === review.name)?.trouble;
  if (!review.listed) {
    return (
      <Part title="Definitions">
        <p class="same">{review.last_error ? "Could not list the tools:" : "The server is starting. Its tools appear here when it has listed them."}</p>
        {trouble && <p class="strong"><Visible text={cause({ trouble })} /></p>}
        {review.last_error && <pre class="json cmd wrap" tabIndex={0} aria-label="last error"><Visible text={review.last_error} /></pre>}
      </Part>
    );
  }
  const all = definitions(review);
  const said = numbered(review.findings);
  return (
    <>
      <Judged review={review} />
      {review.instructions && (
        <Part title="Instructions" end="sent to clients">
          <Words text={review.instructions} findings={open ? [] : said} />
          {!open && said.length > 0 && <FindingList findings={said} />}
        </Part>
      )}
      <Part title="Definitions" end={count(all.length, "definition")}>
        {all.length === 0 && <p class="same">The server has no tools, prompts or resources.</p>}
        <ul class="defined">
          {all.slice(0, shown).map((d) => <One key={d.key} server={review.name} d={d} open={open === d.key} onOpen={() => setOpen(open === d.key ? "" : d.key)} />)}
        </ul>
        {all.length > shown && <Button kind="quiet" small onClick={() => setShown(shown + step)}>{`Show ${Math.min(step, all.length - shown)} more of ${all.length}`}</Button>}
        {review.total_offers > review.offers.length && <p class="same">{`${count(review.total_offers - review.offers.length, "more definition")} not shown. The approval covers only the ones shown.`}</p>}
      </Part>
    </>
  );
}

// The overall verdict, above the definitions of a server.
function Judged({ review }: { review: Review }) {
  const all = definitions(review);
  const bad = all.filter((d) => d.verdict === "block").length + (review.verdict === "block" ? 1 : 0);
  const odd = all.filter((d) => d.verdict === "review" || d.verdict === "incomplete").length;
  if (bad > 0) return <VerdictBox said={{ kind: "hot", icon: "shield", strong: "Likely attack.", text: `${spelled(bad)} of ${count(all.length + (review.instructions ? 1 : 0), "text")} ${bad === 1 ? "has" : "have"} findings typical of attacks.` }} />;
  if (odd > 0) return <VerdictBox said={{ kind: "warm", icon: "shield", strong: `${count(odd, "definition")} to review.`, text: "Attacks and legitimate tools both use such text. Definitions with findings are listed first." }} />;
  return <VerdictBox said={{ kind: "calm", icon: "shield-ok", strong: "No findings.", text: "Review the tools, then approve." }} />;
}

// Only one is open at a time: the numbers of findings must be unique on the page.
function One({ server, d, open, onOpen }: { server: string; d: Definition; open: boolean; onOpen: () => void }) {
  const text = object(d.definition).description;
  const n = d.findings.length;
  return (
    <li>
      <button type="button" aria-expanded={open} onClick={onOpen}>
        <span class="cut tool"><Visible text={d.name} /></span>
        <span class="row">{n > 0 && <Tag kind={d.verdict === "block" ? "hot" : "warm"}>{count(n, "finding")}</Tag>}{d.reason === "changed" && <Tag>changed</Tag>}{d.reason === "blocked" && <Tag>blocked</Tag>}{!d.reason && <Tag>approved</Tag>}{d.kind === "tool" ? <Lane lane={laneOf(d.definition)} /> : <span class="dim">{d.kind}</span>}</span>
        {typeof text === "string" && <span class="why cut"><Visible text={text.slice(0, 300)} /></span>}
      </button>
      {open && <Opened target={{ kind: d.kind, server, name: d.name }} />}
    </li>
  );
}

function Opened({ target }: { target: Target }) {
  const r = useResource(routeOf(target), (signal) => getDiff(target, signal), { keep: false });
  if (r.data) return <div class="opened"><Body target={target} diff={r.data} view="difference" lanes={lanesOf(r.data)} /></div>;
  return r.error !== undefined ? <ErrorPart title="Could not load the definition" error={r.error} onRetry={r.reload} /> : <>{r.slow && <Skeleton />}</>;
}
