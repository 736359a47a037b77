import type { ActivityRecord } from "../../api/types";
import { href } from "../../router";
import { DrawerPart } from "../../ui/drawer";
import { Icon } from "../../ui/icon";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { checks, hintLines, reasonOf, remedy } from "./decision";
import { actorWords } from "./row";

const outcomes = { allowed: "Allowed.", warned: "Allowed, with a warning.", refused: "Refused." };

/** The part that tells what decided about a call: of a refusal with what would pass. */
export function DecisionPart({ record: r }: { record: ActivityRecord }) {
  const d = r.metadata.decision;
  const refused = r.status === "blocked";
  if (!d && !refused) return null;
  const would = remedy(r);
  return (
    <DrawerPart title="Decision" end={r.metadata.error_code && <span class="mono dim">{r.metadata.error_code}</span>}>
      <p>{d ? outcomes[d.outcome] ?? "" : "Refused."} <span class="soft">{refused && r.error_message ? <Visible text={r.error_message} /> : d && reasonOf(d, r.metadata.tool_variant)}</span></p>
      {would && <p class="would"><b>What would pass</b> {would.text} {would.page && <a class="link" href={href(would.page, would.id ? { id: would.id } : {})}>{would.link}</a>}</p>}
      {d && <ul class="checks">{checks(d).map((c) => <li key={c.name} class={c.passed ? undefined : "not"}><Icon name={c.passed ? "check" : "block"} small />{c.name}<span class="vh">{c.passed ? ": passed" : ": refused"}</span></li>)}</ul>}
      {d && <Judged record={r} />}
    </DrawerPart>
  );
}

// The facts, for who wants to know: folded, because the sentence above says what they come to.
function Judged({ record: r }: { record: ActivityRecord }) {
  const d = r.metadata.decision!;
  const hints = hintLines(d);
  if (!hints.length && !d.fingerprint && !d.config_revision) return null;
  return (
    <details class="judged">
      <summary>Judged by</summary>
      <dl class="defs">
        {hints.map((h) => <><dt key={h.name}>{h.name}</dt><dd>{h.value ? "yes" : "no"} <span class="dim">{h.from}</span></dd></>)}
        {d.call_with && <><dt>Called with</dt><dd class="mono">{r.metadata.tool_variant}{r.metadata.tool_variant !== d.call_with && <span class="dim"> instead of {d.call_with}</span>}</dd></>}
        {d.approved_by && <><dt>Approved</dt><dd>{d.approved_by.startsWith("trust:") ? `by ${d.approved_by}` : `by ${actorWords(d.approved_by)}`} {d.approved_at && <Time class="dim" at={d.approved_at} suffix />}</dd></>}
        {d.fingerprint && <><dt>Definition</dt><dd class="mono" title={d.fingerprint}>{d.fingerprint.slice(0, 12)}…</dd></>}
        {d.config_revision && <><dt>Configuration</dt><dd class="mono">{d.config_revision}</dd></>}
      </dl>
    </details>
  );
}
