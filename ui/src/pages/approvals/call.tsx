// One call that is held: what would be sent, by whom, and the answer.

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
        {r.error !== undefined ? <ErrorPart title="This call cannot be shown" error={r.error} onRetry={r.reload} /> : r.slow && <Skeleton lines={8} />}
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
          {c.reason && <Part title="Why, as the agent claims"><p class="quote gap">“<Visible text={c.reason} />”</p></Part>}
          <Who call={c} />
          {c.state === "waiting" && <Part title="What a lease would cover"><p class="same"><Visible text={covers(offered(c))} /> You choose the tools, the lane, the time, the count and the token. It also ends when you revoke it, and when the configuration changes.</p></Part>}
        </div>
      </div>
      {c.state === "waiting" && <Answers call={c} onDone={onDone} onNext={onNext} onStale={r.reload} />}
    </>
  );
}

function Meta({ call: c }: { call: PendingCall }) {
  return (
    <p class="meta">
      Asked <Time at={c.asked_at} suffix /> by <Visible text={c.client_name || actorWords(c.actor)} />.{" "}
      {c.state === "waiting" && (stillWaits(c) ? <>It waits for your answer, <Left until={c.waits_until!} /> more.</> : <>It waits no longer; made again within <Left until={c.until} />, it takes your answer.</>)}
    </p>
  );
}

function Arguments({ call: c }: { call: PendingCall }) {
  if (c.state !== "waiting" && c.arguments === null) return null; // its record has them
  const text = c.arguments_truncated ? String(c.arguments) : undefined;
  return (
    <Part title="Arguments, as they will be sent" end={<CopyButton label="Copy the arguments" text={() => text ?? JSON.stringify(c.arguments, null, 2)} />}>
      <div class="gap">{text !== undefined ? <Text label="arguments" text={text} /> : <Json wrap label="arguments" value={c.arguments} />}</div>
      {text !== undefined && <p class="same">The beginning only. What you allow is all of them.</p>}
    </Part>
  );
}

function Who({ call: c }: { call: PendingCall }) {
  return (
    <Part title="Who">
      <dl class="defs wide">
        {c.client_name && <><dt>Client</dt><dd><Visible text={[c.client_name, c.client_version].filter(Boolean).join(" ")} /> <span class="dim">as it calls itself</span></dd></>}
        <dt>Actor</dt><dd><Visible text={[actorWords(c.actor), surfaceWords(c.source)].filter(Boolean).join(", ")} /></dd>
        <dt>Rule</dt><dd class="mono"><Visible text={c.rule} /></dd>
        <dt>Record</dt><dd><a class="link mono" href={href("activity", { since: "30d", id: c.activity_id })}>{c.activity_id}</a></dd>
      </dl>
    </Part>
  );
}
