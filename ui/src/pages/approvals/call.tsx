// One held call: its arguments, its caller, and the answer.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { api, path } from "../../api/client";
import type { PendingCall } from "../../api/types";
import { useEvents } from "../../data/live";
import { useResource } from "../../data/resource";
import { actorWords, surfaceWords } from "../../lib/who";
import { href } from "../../router";
import { CopyButton } from "../../ui/copy";
import { Json, Text } from "../../ui/json";
import { ErrorPart, Skeleton } from "../../ui/parts";
import { Left, stillWaits, Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { Answers } from "./answers";
import { Subject } from "./detail";
import { covers, offered } from "./lease";
import { Part, VerdictBox } from "./parts";
import { heldWords } from "./words";

export function CallDetail({ id, onDone, onNext, back }: { id: string; onDone: () => void; onNext?: () => void; back: ComponentChildren }) {
  const [turn, setTurn] = useState(0);
  const r = useResource("pending " + id, (signal) => api.get<PendingCall>(path`/pending/${id}`, {}, signal), { keep: false, turn });
  useEvents((batch) => batch.some((e) => e.name === "reset" || e.name === "pending") && setTurn((n) => n + 1));
  const c = r.data;
  if (!c) {
    return (
      <div class="scroll"><div class="review">
        {back}<h1>{id}</h1>
        {r.error !== undefined ? <ErrorPart title="Could not load the call" error={r.error} onRetry={r.reload} /> : r.slow && <Skeleton lines={8} />}
      </div></div>
    );
  }
  return (
    <>
      <div class="scroll">
        <div class="review">
          {back}
          <div class="head"><div><h1><Subject target={{ kind: "tool", server: c.server, name: c.tool }} /></h1><Meta call={c} /></div></div>
          <VerdictBox said={heldWords(c)} />
          <Arguments call={c} />
          {c.reason && <Part title="Reason given by the agent"><p class="quote gap">“<Visible text={c.reason} />”</p></Part>}
          <Caller call={c} />
          {c.state === "waiting" && <Part title="Lease"><p class="same">A lease approves <Visible text={covers(offered(c))} /> You can change these limits. It ends early if you revoke it or the configuration changes.</p></Part>}
        </div>
      </div>
      {c.state === "waiting" && <Answers call={c} onDone={onDone} onNext={onNext} onStale={r.reload} />}
    </>
  );
}

function Meta({ call: c }: { call: PendingCall }) {
  return (
    <p class="meta">
      Requested <Time at={c.asked_at} suffix /> by <Visible text={c.client_name || actorWords(c.actor)} />.{" "}
      {c.state === "waiting" && (stillWaits(c) ? <>Waiting for your answer, <Left until={c.waits_until!} /> left.</> : <>The client stopped waiting. If it repeats the call within <Left until={c.until} />, your answer applies.</>)}
    </p>
  );
}

function Arguments({ call: c }: { call: PendingCall }) {
  if (c.state !== "waiting" && c.arguments === null) return null; // its record has them
  const text = c.arguments_truncated ? String(c.arguments) : undefined;
  return (
    <Part title="Arguments" end={<CopyButton label="Copy arguments" text={() => text ?? JSON.stringify(c.arguments, null, 2)} />}>
      <div class="gap">{text !== undefined ? <Text label="arguments" text={text} /> : <Json wrap label="arguments" value={c.arguments} />}</div>
      {text !== undefined && <p class="same">Only the beginning is shown. Your approval covers all arguments.</p>}
    </Part>
  );
}

function Caller({ call: c }: { call: PendingCall }) {
  return (
    <Part title="Caller">
      <dl class="defs wide">
        {c.client_name && <><dt>Client</dt><dd><Visible text={[c.client_name, c.client_version].filter(Boolean).join(" ")} /> <span class="dim">name not verified</span></dd></>}
        <dt>Actor</dt><dd><Visible text={[actorWords(c.actor), surfaceWords(c.source)].filter(Boolean).join(", ")} /></dd>
        <dt>Rule</dt><dd class="mono"><Visible text={c.rule} /></dd>
        <dt>Record</dt><dd><a class="link mono" href={href("activity", { since: "30d", id: c.activity_id })}>{c.activity_id}</a></dd>
      </dl>
    </Part>
  );
}
