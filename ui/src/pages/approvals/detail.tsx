// One definition that waits: what it says, and the decision about it.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, explain, ProblemError } from "../../api/client";
import type { Tool } from "../../api/types";
import { useEvents } from "../../data/live";
import { now } from "../../data/now";
import { useResource } from "../../data/resource";
import { useServers } from "../../data/shared";
import { count, date, exact } from "../../lib/format";
import { href } from "../../router";
import { Seg } from "../../ui/field";
import { ToolName } from "../../ui/marks";
import { Confirm } from "../../ui/dialog";
import { ErrorPart, Skeleton } from "../../ui/parts";
import { toast } from "../../ui/toast";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { ActsBar, useSettled, type Act } from "./acts";
import { Body, lanesOf, views, type Lanes, type View } from "./body";
import { decide, getDiff, routeOf, takeBack, type Diff, type Target, type Verb } from "./decide";
import type { DefinitionItem } from "./model";
import { VerdictBox } from "./parts";
import { accepter, since, verdict } from "./words";

export interface DetailProps {
  target: Target;
  /** What the list says of it; absent when it does not wait. */
  item?: DefinitionItem;
  view: View;
  onView: (v: View) => void;
  /** The decision holds: the next one opens. */
  onDone: () => void;
  /** It was taken back: it opens again. */
  onBack: () => void;
  onNext?: () => void;
  back: ComponentChildren;
}

/** The detail of a definition; give it the item's key, so that another item is another detail. */
export function Detail(p: DetailProps) {
  const { target, item } = p;
  const [turn, setTurn] = useState(0);
  const r = useResource(routeOf(target), (signal) => getDiff(target, signal), { keep: false, turn });
  const tool = useResource(target.kind === "tool" ? "tool " + routeOf(target) : null, (signal) => api.get<Tool>(routeOf(target), {}, signal), { keep: false, turn });
  useEvents((batch) => batch.some((e) => e.name === "reset" || ((e.name === "tool" || e.name === "server") && e.server === target.server)) && setTurn((n) => n + 1));
  const diff = r.data;
  const changed = useChanged(diff?.fingerprint);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (changed) box.current?.scrollTo(0, 0);
  }, [changed]);
  const name = <h1><Subject target={target} /></h1>;
  if (!diff) {
    return (
      <div class="scroll"><div class="review">
        {p.back}{name}
        {r.error !== undefined ? <ErrorPart title="This definition cannot be shown" error={r.error} onRetry={r.reload} /> : r.slow && <Skeleton lines={8} />}
      </div></div>
    );
  }
  const lanes = lanesOf(diff, tool.data, item);
  return (
    <>
      <div class="scroll" ref={box}>
        <div class="review">
          {p.back}
          <div class="head">
            <div>{name}<Meta target={target} diff={diff} item={item} /></div>
            <div class="acts"><Seg label="View" value={p.view} options={views} onChange={p.onView} /></div>
          </div>
          {changed > 0 && <p class="note once" role="alert">It has changed once more. This is what it says now.</p>}
          <VerdictBox said={verdict(diff, lanes.was, lanes.is)} />
          <Shown {...{ target, diff, lanes, view: p.view }} />
        </div>
      </div>
      <Decisions {...p} diff={diff} lanes={lanes} changed={changed} onStale={r.reload} />
    </>
  );
}

function Shown({ target, diff, lanes, view }: { target: Target; diff: Diff; lanes: Lanes; view: View }) {
  const server = useServers().data?.find((s) => s.name === target.server);
  return <Body target={target} diff={diff} view={view} lanes={lanes} server={server} />;
}

// How often the definition has become another one while it was looked at.
function useChanged(fingerprint: string | undefined): number {
  const seen = useRef<{ fingerprint?: string; times: number }>({ times: 0 });
  const s = seen.current;
  if (fingerprint !== undefined && fingerprint !== s.fingerprint) {
    if (s.fingerprint !== undefined) s.times++;
    s.fingerprint = fingerprint;
  }
  return s.times;
}

export function Subject({ target }: { target: Target }) {
  const kind = target.kind === "tool" || target.kind === "server" ? "" : target.kind;
  return <><ToolSafe server={target.server} name={target.name || (kind === "instructions" ? "instructions" : "")} />{kind && kind !== "instructions" && <> <span class="kind">{kind}</span></>}</>;
}

function ToolSafe({ server, name }: { server: string; name: string }) {
  if (!name) return <ToolName tool={server} />;
  return <span class="tool"><span class="sv">{server}:</span><Visible text={name} /></span>;
}

function Meta({ target, diff, item }: { target: Target; diff: Diff; item?: DefinitionItem }) {
  const id = `${target.server}:${target.name}`;
  const at = item?.since;
  const refused = useCalls(target.kind === "tool" && at ? { tool: id, status: "blocked", start_time: at } : undefined);
  const used = useCalls(target.kind === "tool" && diff.approved ? { tool: id, status: "success,error", start_time: diff.approved.at } : undefined);
  const word = diff.reason === "new" ? "New" : diff.reason === "blocked" ? "Blocked" : "Changed";
  const by = diff.approved && <>Accepted on <time dateTime={diff.approved.at}>{date(new Date(diff.approved.at), now.value)}</time> {accepter(diff.approved.by)}{used ? `, called ${count(used, "time")} since` : ""}.</>;
  return (
    <p class="meta">
      {diff.reason && word}{at && diff.reason && <> {diff.reason === "new" ? <time dateTime={at} title={exact(at)}>{since(at, now.value)}</time> : <Time at={at} suffix />}</>}
      {refused ? <>; <a class="link" href={href("activity", { tool: id, status: "blocked" })}>{count(refused, "call")} refused</a> since</> : ""}
      {diff.reason && ". "}{by}
    </p>
  );
}

function useCalls(query: Record<string, string> | undefined): number | undefined {
  const r = useResource(query ? JSON.stringify(query) : null, (signal) => api.get<{ total: number }>("/activity", { ...query, type: "tool_call,policy_decision", limit: 1 }, signal), { keep: false });
  return r.data?.total;
}

function Decisions({ target, diff, lanes, changed, onDone, onBack, onNext, onStale }: DetailProps & { diff: Diff; lanes: Lanes; changed: number; onStale: () => void }) {
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const settled = useSettled(diff.fingerprint, changed > 0);
  const label = target.name ? `${target.server}:${target.name}` : `the ${target.kind} of ${target.server}`;

  const act = async (verb: Verb, done: string, options: { keep?: boolean; undo?: boolean } = {}) => {
    setBusy(true);
    try {
      await decide(target, verb, diff.fingerprint, options.keep);
    } catch (error) {
      // Another definition by now: what it says is shown, and decided about anew.
      if (error instanceof ProblemError && error.status === 409) onStale();
      throw error;
    } finally {
      setBusy(false);
    }
    const undo = () => takeBack(target, diff.fingerprint).then(() => {
      onBack();
      if (options.keep) toast({ text: `${label} waits again. The configuration still counts it as destructive.` });
    });
    toast({ text: done, ...(options.undo ? { undo } : {}) });
    onDone();
  };
  const quietly = (...a: Parameters<typeof act>) => void act(...a).catch(tell);
  const approve = () => quietly("approve", `Approved ${label}.`, { undo: true });
  const anyway = () => setAsking(true);
  const block: Act = { key: "x", label: "Block", run: () => quietly("block", `Blocked ${label}. No agent can use it.`) };
  const poisoned = diff.verdict === "block";
  const destructive = lanes.was === "destructive";

  const acts: Act[] = [];
  if (!diff.reason) {
    acts.push({ key: "u", label: "Take the approval back", run: () => quietly("withdraw", `${label} waits again.`) }, block);
  } else if (poisoned) {
    if (diff.reason !== "blocked") acts.push({ ...block, label: "Block this definition", kind: "danger", icon: "block" });
    acts.push({ key: "a", label: "Approve anyway…", run: anyway });
  } else if (diff.loosened?.length && target.kind === "tool") {
    const keep = () => quietly("approve", `Approved ${label}; it counts as destructive.`, { keep: true, undo: true });
    const lane = lanes.was !== lanes.is || destructive;
    if (lane) acts.push({ key: "K", label: destructive ? "Approve, keep it destructive" : "Approve, count it as destructive", kind: "main", run: keep });
    acts.push({ key: "a", label: "Approve as it says", ...(lane ? {} : { kind: "main" as const }), run: approve });
    if (diff.reason !== "blocked") acts.push(block);
  } else {
    acts.push({ key: "a", label: "Approve", kind: "main", run: approve });
    if (diff.reason !== "blocked") acts.push(block);
  }
  return (
    <>
      <ActsBar acts={acts} ready={settled && !busy} hold={busy || (changed > 0 && !settled)} onNext={onNext} note={<>For exactly this fingerprint.<br />The next change waits again.</>} />
      {asking && (
        <Confirm title={`Approve ${label} although it looks poisoned?`} action="Approve" name={target.name || target.server} nameLabel={`Type its name to approve it`}
          onConfirm={() => act("approve", `Approved ${label} in spite of its findings.`, { undo: true })} onClose={() => setAsking(false)}>
          Agents will read what is marked, as it stands. Approve it only when you know why it says so.
        </Confirm>
      )}
    </>
  );
}

function tell(error: unknown): void {
  const { message, hint } = explain(error);
  toast({ text: [message, hint].filter(Boolean).join(" ") });
}
