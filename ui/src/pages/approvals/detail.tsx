// One definition under review, and the decision about it.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Tool } from "../../api/types";
import { useEvents } from "../../data/live";
import { now } from "../../data/now";
import { useResource } from "../../data/resource";
import { useServers } from "../../data/shared";
import { count, date, exact } from "../../lib/format";
import { href } from "../../router";
import { Seg } from "../../ui/field";
import { ToolName } from "../../ui/marks";
import { ErrorPart, Skeleton } from "../../ui/parts";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { Body, lanesOf, views, type Lanes, type View } from "./body";
import { getDiff, routeOf, type Diff, type Target } from "./decide";
import { Decisions, type Outcome } from "./decisions";
import type { DefinitionItem } from "./model";
import { VerdictBox } from "./parts";
import { accepter, since, verdict } from "./words";

interface Props extends Outcome {
  target: Target;
  /** The item in the list; absent if it needs no review. */
  item?: DefinitionItem;
  view: View;
  onView: (v: View) => void;
  back: ComponentChildren;
  /** Other definitions with the same finding. */
  same?: ComponentChildren;
}

/** The detail of a definition. Give it the key of the item, so that each item has its own detail. */
export function Detail(p: Props) {
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
        {r.error !== undefined ? <ErrorPart title="Could not load the definition" error={r.error} onRetry={r.reload} /> : r.slow && <Skeleton lines={8} />}
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
          {changed > 0 && <p class="note once" role="alert">The definition changed again. This is the current version.</p>}
          <VerdictBox said={verdict(diff, lanes.was, lanes.is)} />
          {p.same}
          <Shown {...{ target, diff, lanes, view: p.view }} />
        </div>
      </div>
      <Decisions target={target} onDone={p.onDone} onBack={p.onBack} onNext={p.onNext} diff={diff} lanes={lanes} changed={changed} onStale={r.reload} />
    </>
  );
}

function Shown({ target, diff, lanes, view }: { target: Target; diff: Diff; lanes: Lanes; view: View }) {
  const server = useServers().data?.find((s) => s.name === target.server);
  return <Body target={target} diff={diff} view={view} lanes={lanes} server={server} />;
}

// How often the definition changed while it was shown.
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
  const by = diff.approved && <>Approved on <time dateTime={diff.approved.at}>{date(new Date(diff.approved.at), now.value)}</time> {accepter(diff.approved.by)}{used ? `, called ${count(used, "time")} since` : ""}.</>;
  return (
    <p class="meta">
      {diff.reason && word}{at && diff.reason && <> {diff.reason === "new" ? <time dateTime={at} title={exact(at)}>{since(at, now.value)}</time> : <Time at={at} suffix />}</>}
      {refused ? <>; <a class="link" href={href("activity", { tool: id, status: "blocked", since: at })}>{count(refused, "call")} refused</a> since</> : ""}
      {diff.reason && ". "}{by}
    </p>
  );
}

function useCalls(query: Record<string, string> | undefined): number | undefined {
  const r = useResource(query ? JSON.stringify(query) : null, (signal) => api.get<{ total: number }>("/activity", { ...query, type: "tool_call,policy_decision", limit: 1 }, signal), { keep: false });
  return r.data?.total;
}
