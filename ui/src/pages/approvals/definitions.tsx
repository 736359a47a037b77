// The second stage of a server's review: its instructions, and each definition in its place.

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
      <Part title="What it says">
        <p class="same">{review.last_error ? "It could not be asked:" : "It is starting, and has not told its tools yet. This page shows them when it has."}</p>
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
        <Part title="Instructions" end="what it tells clients about itself">
          <Words text={review.instructions} findings={open ? [] : said} />
          {!open && said.length > 0 && <FindingList findings={said} />}
        </Part>
      )}
      <Part title="Its definitions" end={count(all.length, "definition")}>
        {all.length === 0 && <p class="same">It offers nothing.</p>}
        <ul class="defined">
          {all.slice(0, shown).map((d) => <One key={d.key} server={review.name} d={d} open={open === d.key} onOpen={() => setOpen(open === d.key ? "" : d.key)} />)}
        </ul>
        {all.length > shown && <Button kind="quiet" small onClick={() => setShown(shown + step)}>{`Show ${Math.min(step, all.length - shown)} more of ${all.length}`}</Button>}
        {review.total_offers > review.offers.length && <p class="same">{`${count(review.total_offers - review.offers.length, "offer")} more wait; this approval is about those that are shown.`}</p>}
      </Part>
    </>
  );
}

// What the definitions of a server are worth, above them.
function Judged({ review }: { review: Review }) {
  const all = definitions(review);
  const bad = all.filter((d) => d.verdict === "block").length + (review.verdict === "block" ? 1 : 0);
  const odd = all.filter((d) => d.verdict === "review" || d.verdict === "incomplete").length;
  if (bad > 0) return <VerdictBox said={{ kind: "hot", icon: "shield", strong: "Looks poisoned.", text: `${spelled(bad)} of its ${count(all.length + (review.instructions ? 1 : 0), "text")} ${bad === 1 ? "has" : "have"} findings of a kind that is only seen in attacks.` }} />;
  if (odd > 0) return <VerdictBox said={{ kind: "warm", icon: "shield", strong: `${spelled(odd)} to look at.`, text: "Attacks have such findings, and so do honest tools. They stand first." }} />;
  return <VerdictBox said={{ kind: "calm", icon: "shield-ok", strong: "The scanner finds nothing in it.", text: "Look at what its tools say they do, then decide." }} />;
}

// One at a time is open: the marks of findings have their numbers on the page once.
function One({ server, d, open, onOpen }: { server: string; d: Definition; open: boolean; onOpen: () => void }) {
  const text = object(d.definition).description;
  const n = d.findings.length;
  return (
    <li>
      <button type="button" aria-expanded={open} onClick={onOpen}>
        <span class="cut tool"><Visible text={d.name} /></span>
        <span class="row">{n > 0 && <Tag kind={d.verdict === "block" ? "hot" : "warm"}>{count(n, "finding")}</Tag>}{d.reason === "changed" && <Tag>changed</Tag>}{d.reason === "blocked" && <Tag>blocked</Tag>}{!d.reason && <Tag>accepted</Tag>}{d.kind === "tool" ? <Lane lane={laneOf(d.definition)} /> : <span class="dim">{d.kind}</span>}</span>
        {typeof text === "string" && <span class="why cut"><Visible text={text.slice(0, 300)} /></span>}
      </button>
      {open && <Opened target={{ kind: d.kind, server, name: d.name }} />}
    </li>
  );
}

function Opened({ target }: { target: Target }) {
  const r = useResource(routeOf(target), (signal) => getDiff(target, signal), { keep: false });
  if (r.data) return <div class="opened"><Body target={target} diff={r.data} view="difference" lanes={lanesOf(r.data)} /></div>;
  return r.error !== undefined ? <ErrorPart title="This definition cannot be shown" error={r.error} onRetry={r.reload} /> : <>{r.slow && <Skeleton />}</>;
}
