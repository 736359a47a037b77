// A server under review: first its launch, then its definitions.

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
        {r.error !== undefined ? <ErrorPart title="Could not load the server" error={r.error} onRetry={r.reload} /> : r.slow && <Skeleton lines={8} />}
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
  return <ol class="stage">{["Launch", "Definitions", "Ready for agents"].map((s, i) => <li key={s} aria-current={i === now ? "step" : undefined}><b>{i + 1}</b>{s}</li>)}</ol>;
}

function Meta({ review, item }: { review: Review; item?: ServerItem }) {
  const by = item?.client || review.proposed_by;
  const at = review.proposed_at ?? item?.since;
  return (
    <p class="meta">
      {by ? <>Proposed <Time at={at} suffix /> by <Visible text={by} />. </> : at && <>In review <time dateTime={at} title={exact(at)}>{since(at, now.value)}</time>. </>}
      {review.stage === "launch" ? "The server has not been started or contacted." : review.stage === "definitions" ? "The server runs for review only. Agents cannot see it." : "The server is in use. The items below need review."}
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
      toast({ text: `Started ${name} for review.`, undo: quarantine });
      return onStale();
    }
    toast({ text: `Approved ${name}. Agents can use it.`, ...(stage === "definitions" ? { undo: quarantine } : {}) });
    onDone();
  });
  const remove = () => run(async () => {
    await api.delete(path`/servers/${name}`);
    toast({ text: proposed ? `Discarded the proposal for ${name}.` : `Removed ${name}.` });
    onDone();
  });
  const quietly = (f: () => Promise<unknown>) => () => void f().catch(tell);

  const n = definitions(review).length;
  const acts: Act[] = [];
  const out: Act = { key: "x", label: proposed ? "Discard proposal" : "Remove…", run: () => setAsking("remove") };
  if (stage === "launch") acts.push({ key: "a", label: "Start for review", kind: "main", run: quietly(approve) }, out);
  else if (!review.listed) acts.push(out);
  else if (gravest(review) === "block") acts.push({ ...out, kind: "danger" }, { key: "a", label: "Approve anyway…", run: () => setAsking("anyway") });
  else acts.push({ key: "a", label: n ? `Approve ${count(n, "definition")}` : "Approve server", kind: "main", run: quietly(approve) }, out);
  return (
    <>
      <ActsBar acts={stage === "approved" ? acts.filter((a) => a.key !== "x") : acts} ready={settled && !busy} hold={busy} onNext={onNext}
        note={stage === "launch" ? <>Applies to this exact launch.<br />A changed launch needs a new review.</> : <>Applies to the definitions shown here.<br />Later changes need a new review.</>} />
      {asking === "remove" && (
        <Confirm title={proposed ? `Discard the proposal for ${name}?` : `Remove ${name}?`} action={proposed ? "Discard" : "Remove"} name={proposed ? undefined : name} nameLabel="Type the name to confirm" onConfirm={remove} onClose={() => setAsking("")}>
          {proposed ? "The server was never started. The agent can propose it again." : "Stops the server and removes it from the configuration file. Its approvals are deleted."}
        </Confirm>
      )}
      {asking === "anyway" && (
        <Confirm title={`Approve ${name} despite its findings?`} action="Approve" name={name} nameLabel="Type the name to confirm" onConfirm={approve} onClose={() => setAsking("")}>
          Agents will read all texts, including the marked ones. Approve it only if you know why they are there.
        </Confirm>
      )}
    </>
  );
}
