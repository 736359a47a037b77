// A server that waits: first how it is started, then what it says.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { api, path, ProblemError } from "../../api/client";
import { useEvents } from "../../data/live";
import { useResource } from "../../data/resource";
import { now } from "../../data/now";
import { count, exact } from "../../lib/format";
import { Confirm } from "../../ui/dialog";
import { ErrorPart, Skeleton } from "../../ui/parts";
import { tell, toast } from "../../ui/toast";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { ActsBar, useSettled, type Act } from "./acts";
import { Definitions } from "./definitions";
import { Subject } from "./detail";
import { Launch } from "./launch";
import type { ServerItem } from "./model";
import { definitions, getReview, gravest, type Review } from "./review";
import { since } from "./words";

export function ServerDetail({ name, item, onDone, onNext, back }: { name: string; item?: ServerItem; onDone: () => void; onNext?: () => void; back: ComponentChildren }) {
  const [turn, setTurn] = useState(0);
  const r = useResource("review " + name, (signal) => getReview(name, signal), { keep: false, turn });
  useEvents((batch) => batch.some((e) => e.name === "reset" || ((e.name === "tool" || e.name === "server") && e.server === name)) && setTurn((n) => n + 1));
  const review = r.data;
  const title = <h1><Subject target={{ kind: "server", server: name, name: "" }} /></h1>;
  if (!review) {
    return (
      <div class="scroll"><div class="review">
        {back}{title}
        {r.error !== undefined ? <ErrorPart title="This server cannot be shown" error={r.error} onRetry={r.reload} /> : r.slow && <Skeleton lines={8} />}
      </div></div>
    );
  }
  return (
    <>
      <div class="scroll">
        <div class="review">
          {back}
          <div class="head"><div>{title}<Meta review={review} item={item} /></div></div>
          <Stages at={review.stage} />
          {review.notice && <p class="note once">{review.notice}</p>}
          {review.stage === "launch" ? <Launch review={review} item={item} /> : <Definitions review={review} />}
        </div>
      </div>
      <ServerActs review={review} onDone={onDone} onNext={onNext} onStale={r.reload} />
    </>
  );
}

function Stages({ at }: { at: Review["stage"] }) {
  const now = { launch: 0, definitions: 1, approved: 2 }[at];
  return <ol class="stage">{["How it is started", "What it says", "Agents can use it"].map((s, i) => <li key={s} aria-current={i === now ? "step" : undefined}><b>{i + 1}</b>{s}</li>)}</ol>;
}

function Meta({ review, item }: { review: Review; item?: ServerItem }) {
  const by = item?.client || review.proposed_by;
  const at = review.proposed_at ?? item?.since;
  return (
    <p class="meta">
      {by ? <>Proposed <Time at={at} suffix /> by <Visible text={by} />. </> : at && <>Waits <time dateTime={at} title={exact(at)}>{since(at, now.value)}</time>. </>}
      {review.stage === "launch" ? "Nothing of it was started or contacted." : review.stage === "definitions" ? "It runs for the review only; no agent sees it." : "It is in use; what is listed below waits."}
    </p>
  );
}

function ServerActs({ review, onDone, onNext, onStale }: { review: Review; onDone: () => void; onNext?: () => void; onStale: () => void }) {
  const [asking, setAsking] = useState<"" | "anyway" | "remove">("");
  const [busy, setBusy] = useState(false);
  const settled = useSettled(review.fingerprint, false);
  const { name, stage } = review;
  const proposed = stage === "launch" && !!review.proposed_by;
  const run = async (what: () => Promise<unknown>) => {
    setBusy(true);
    try {
      await what();
    } catch (error) {
      if (error instanceof ProblemError && error.status === 409) onStale();
      throw error;
    } finally {
      setBusy(false);
    }
  };
  const quarantine = () => api.post(path`/servers/${name}/quarantine`);
  const approve = () => run(async () => {
    await api.post(path`/servers/${name}/approve`, { fingerprint: review.fingerprint });
    if (stage === "launch") {
      toast({ text: `${name} starts for the review.`, undo: quarantine });
      return onStale();
    }
    toast({ text: `Approved ${name}: agents can use it.`, ...(stage === "definitions" ? { undo: quarantine } : {}) });
    onDone();
  });
  const remove = () => run(async () => {
    await api.delete(path`/servers/${name}`);
    toast({ text: proposed ? `Dropped the proposal of ${name}.` : `Removed ${name}.` });
    onDone();
  });
  const quietly = (f: () => Promise<unknown>) => () => void f().catch(tell);

  const n = definitions(review).length;
  const acts: Act[] = [];
  const out: Act = { key: "x", label: proposed ? "Drop the proposal" : "Remove it…", run: () => setAsking("remove") };
  if (stage === "launch") acts.push({ key: "a", label: "Start it for the review", kind: "main", run: quietly(approve) }, out);
  else if (!review.listed) acts.push(out);
  else if (gravest(review) === "block") acts.push({ ...out, kind: "danger" }, { key: "a", label: "Approve anyway…", run: () => setAsking("anyway") });
  else acts.push({ key: "a", label: n ? `Approve it with ${count(n, "definition")}` : "Approve it", kind: "main", run: quietly(approve) }, out);
  return (
    <>
      <ActsBar acts={stage === "approved" ? acts.filter((a) => a.key !== "x") : acts} ready={settled && !busy} hold={busy} onNext={onNext}
        note={stage === "launch" ? <>For exactly this command.<br />Another one is a new review.</> : <>For exactly what is shown.<br />What changes waits again.</>} />
      {asking === "remove" && (
        <Confirm title={proposed ? `Drop the proposal of ${name}?` : `Remove ${name}?`} action={proposed ? "Drop it" : "Remove"} name={proposed ? undefined : name} nameLabel="Name of the server" onConfirm={remove} onClose={() => setAsking("")}>
          {proposed ? "It was never started. The agent may propose it again." : "Takes it out of the configuration file and stops it. What was decided about it is forgotten."}
        </Confirm>
      )}
      {asking === "anyway" && (
        <Confirm title={`Approve ${name} although it looks poisoned?`} action="Approve" name={name} nameLabel="Type its name to approve it" onConfirm={approve} onClose={() => setAsking("")}>
          Agents will read all that is shown, with what is marked in it. Approve it only when you know why it says so.
        </Confirm>
      )}
    </>
  );
}
