import { api, path } from "../../api/client";
import type { ActivityRecord, PendingCall } from "../../api/types";
import { useResource } from "../../data/resource";
import { usePending } from "../../data/shared";
import { span } from "../../lib/format";
import { own } from "../../lib/own";
import { actorWords, byWords } from "../../lib/who";
import { href } from "../../router";
import { DrawerPart } from "../../ui/drawer";
import { Icon } from "../../ui/icon";
import { AnswerTime, Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { argumentWords, checks, hintLines, reasonOf, remedy } from "./decision";

const outcomes = { allowed: "Allowed.", warned: "Allowed, with a warning.", refused: "Refused.", asked: "Needs approval." };

/** The decision about a call; for a refusal, how to allow it. */
export function DecisionPart({ record: r }: { record: ActivityRecord }) {
  const d = r.metadata.decision;
  const refused = r.status === "blocked";
  if (!d && !refused) return null;
  const would = remedy(r);
  return (
    <DrawerPart title="Decision" end={r.metadata.error_code && <span class="mono dim">{r.metadata.error_code}</span>}>
      <p>{d ? own(outcomes, d.outcome) ?? "" : "Refused."} <span class="soft">{refused && r.error_message ? <Visible text={r.error_message} /> : d && reasonOf(d, r.metadata.tool_variant)}</span></p>
      {d?.lane && <p class="soft"><Visible text={argumentWords(d.lane)} /></p>}
      {d?.approval && <Answered id={d.approval} />}
      {r.status === "held" && <StillHeld id={r.id} />}
      {would && <p class="would"><b>To allow this</b> {would.text} {would.page && <a class="link" href={href(would.page, would.id ? { id: would.id } : {})}>{would.link}</a>}</p>}
      {d && <ul class="checks">{checks(d).map((c) => <li key={c.name} class={c.passed ? undefined : "not"}><Icon name={c.passed ? "check" : c.passed === undefined ? "clock" : "block"} small />{c.name}<span class="vh">{c.passed ? ": passed" : c.passed === undefined ? ": needs approval" : ": refused"}</span></li>)}</ul>}
      {d && <Judged record={r} />}
    </DrawerPart>
  );
}

// The user who approved the call. Pending calls are kept for a limited time.
function Answered({ id }: { id: string }) {
  const q = useResource("pending " + id, (signal) => api.get<PendingCall>(path`/pending/${id}`, {}, signal), { keep: false }).data;
  if (!q?.answered_at) return <p class="soft">Approved by <span class="mono">{id}</span>, an approval or a lease.</p>;
  return <p class="soft">Approved by {byWords(q.answered_by, q.answered_via)} after {span((Date.parse(q.answered_at) - Date.parse(q.asked_at)) / 1000)}.</p>;
}

function StillHeld({ id }: { id: string }) {
  const c = usePending().data?.find((p) => p.activity_id === id);
  if (!c) return <p class="soft">Answered or expired. If the call was sent, it has its own record.</p>;
  return <p class="would"><b>Pending</b> <AnswerTime call={c} />. <a class="link" href={href("approvals", { kind: "call", id: c.id })}>Review</a></p>;
}

// The facts behind the decision, folded.
function Judged({ record: r }: { record: ActivityRecord }) {
  const d = r.metadata.decision!;
  const hints = hintLines(d);
  if (!hints.length && !d.fingerprint && !d.config_revision) return null;
  return (
    <details class="judged">
      <summary>Details</summary>
      <dl class="defs">
        {hints.map((h) => <><dt key={h.name}>{h.name}</dt><dd>{h.value ? "yes" : "no"} <span class="dim">{h.from}</span></dd></>)}
        {d.alias && <><dt>Alias</dt><dd class="mono">{d.alias}</dd></>}
        {d.call_with && <><dt>Calling tool</dt><dd class="mono">{r.metadata.tool_variant}{r.metadata.tool_variant !== d.call_with && <span class="dim"> instead of {d.call_with}</span>}</dd></>}
        {d.approved_by && <><dt>Approved</dt><dd>{d.approved_by.startsWith("trust:") ? `by ${d.approved_by}` : `by ${actorWords(d.approved_by)}`} {d.approved_at && <Time class="dim" at={d.approved_at} suffix />}</dd></>}
        {d.fingerprint && <><dt>Definition</dt><dd class="mono" title={d.fingerprint}>{d.fingerprint.slice(0, 12)}…</dd></>}
        {d.config_revision && <><dt>Configuration</dt><dd class="mono">{d.config_revision}</dd></>}
      </dl>
    </details>
  );
}
