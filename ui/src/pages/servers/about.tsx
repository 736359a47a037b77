// The status of a server: failure, availability, latency, tools.

import { api } from "../../api/client";
import type { Server, ServerDetail, Summary } from "../../api/types";
import { useRange } from "../../data/range";
import { useResource } from "../../data/resource";
import { now } from "../../data/now";
import { useStatus } from "../../data/shared";
import { bytes, count, number } from "../../lib/format";
import { own } from "../../lib/own";
import * as range from "../../lib/range";
import { href } from "../../router";
import { DrawerPart } from "../../ui/drawer";
import { Loaded } from "../../ui/parts";
import { Spark } from "../../ui/spark";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { Strip } from "./strip";
import { Fixes, useFailure } from "../../ui/failure";
import { Why } from "./help";
import { broken, tools } from "./model";
import { took } from "./took";

export function About({ of: s, onLog }: { of: ServerDetail; onLog: () => void }) {
  return (
    <>
      {broken(s) && <DrawerPart title="Not running"><Broken of={s} /></DrawerPart>}
      {s.enabled && s.quarantined && <DrawerPart title="Needs review"><p>{waits(s)} <a class="link" href={href("approvals", { id: s.name })}>Review</a></p></DrawerPart>}
      {s.login && <DrawerPart title={s.login.state === "retrying" ? "Login not renewed" : "Needs a login"}><p>{sentence(s.login.reason)}{s.login.state === "retrying" && " Log in again if this persists."}</p>{s.login.detail && <p class="soft"><Visible text={s.login.detail} /></p>}</DrawerPart>}
      <DrawerPart title="Last 24 hours" end={s.since && <span>{stateSince(s.state)} <Time at={s.since} suffix /></span>}><Strip turns={s.availability} /></DrawerPart>
      <Latency of={s} />
      <Tools of={s} />
      <Facts of={s} onLog={onLog} />
    </>
  );
}

function sentence(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1) + ".";
}

function waits(s: ServerDetail): string {
  if (s.proposed_by) return `Proposed by ${s.proposed_by}. Not started or contacted yet.`;
  return s.stage === "definitions" ? "The launch is approved. Its definitions need review." : "MCPProxy does not start or contact it before you approve its launch.";
}

const stateSince = (state: string) => own({ ready: "ready since", idle: "idle since", failed: "failed", connecting: "connecting since", needs_login: "needs login since", needs_secret: "needs a secret since", needs_variable: "needs a variable since" }, state) ?? "stopped";

/** Calls and their latency in the selected time range, the slowest tools first. */
function Latency({ of: s }: { of: ServerDetail }) {
  const [span] = useRange();
  const status = useStatus();
  const summary = useResource(
    `latency ${s.name} ${span.since} ${span.until}`,
    (signal) => api.get<Summary>("/activity/summary", { server: s.name, type: "tool_call", group: "tool", step: range.step(span, new Date(), 24), ...range.params(span, new Date()) }, signal),
    { keep: false, turn: status.data?.activity.records },
  );
  return (
    <DrawerPart title={`Calls ${range.within(span, now.value)}`} end={<a class="link" href={href("activity", { server: s.name, since: span.since, until: span.until })}>Activity</a>}>
      <Loaded of={summary} title="Could not load calls">
        {(d) => (d.calls === 0 ? <p class="dim">No calls {range.within(span, now.value)}.{d.last && <> Last call <Time at={d.last} suffix />.</>}</p> : (
          <>
            <dl class="figures">
              <div><dt>Calls</dt><dd>{number(d.calls)}</dd></div>
              <div><dt>Failed</dt><dd>{number(d.failed)}</dd></div>
              <div><dt>p50</dt><dd>{took(d.p50_ms)}</dd></div>
              <div><dt>p95</dt><dd>{took(d.p95_ms)}</dd></div>
            </dl>
            {s.calls && <div class="day"><Spark hours={s.calls.hours} /></div>}
            <Slowest of={d} server={s.name} span={span} />
          </>
        ))}
      </Loaded>
    </DrawerPart>
  );
}

function Slowest({ of: d, server, span }: { of: Summary; server: string; span: range.Range }) {
  const slow = [...d.groups].filter((g) => g.calls > 0).sort((a, b) => b.p95_ms - a.p95_ms).slice(0, 5);
  return (
    <table class="plain slowest">
      <caption class="vh">Slowest tools</caption>
      <thead><tr><th scope="col">Tool</th><th scope="col" class="n">Calls</th><th scope="col" class="n">p95</th></tr></thead>
      <tbody>{slow.map((g) => <tr key={g.key}><td><a class="mono" href={href("activity", { tool: g.key, since: span.since, until: span.until })}><Visible text={g.key.startsWith(server + ":") ? g.key.slice(server.length + 1) : g.key} /></a></td><td class="n">{number(g.calls)}</td><td class="n">{took(g.p95_ms)}</td></tr>)}</tbody>
    </table>
  );
}

const statusWords: Record<string, string> = {
  callable: "callable", pending_approval: "need review", blocked: "blocked by you", disabled_by_user: "disabled", disabled_by_config: "disabled in the configuration", server_disabled: "server disabled",
  server_quarantined: "in quarantine", disabled_unknown: "not callable", for_clients: "for some clients only",
};

function Tools({ of: s }: { of: ServerDetail }) {
  const t = tools(s);
  const by = Object.entries(s.tools ?? {}).filter(([, n]) => n > 0);
  const offers = Object.entries(s.offers ?? {}).filter(([, o]) => o.total > 0);
  return (
    <DrawerPart title="Tools" end={t && t.total > 0 && <a class="link" href={href("tools", { server: s.name })}>{count(t.total, "tool")}</a>}>
      {!t && <p class="dim">{s.lazy ? "Not listed yet: a lazy server starts with its first call. To list its tools now, restart it." : "Not listed yet."}</p>}
      {t && by.length === 0 && <p>{t.total === 0 ? "No tools." : t.total === 1 ? "The tool is callable." : `All ${number(t.total)} are callable.`}{!!s.definition_bytes && <span class="dim"> Definitions: {bytes(s.definition_bytes)}.</span>}</p>}
      {by.length > 0 && <dl class="defs">{by.map(([word, n]) => <><dt key={word} class="num">{number(n)}</dt><dd><a class="hover" href={href("tools", { server: s.name, status: word })}>{own(statusWords, word) ?? word}</a></dd></>)}</dl>}
      {offers.length > 0 && <p class="soft">{offers.map(([kind, o]) => (kind === "instructions" ? "instructions" : count(o.total, kind.replace(/s$/, "")))).join(", ")}</p>}
      {!!s.waiting && <p><a class="link" href={href("approvals")}>{s.waiting === 1 ? "1 item needs review" : `${number(s.waiting)} items need review`}</a></p>}
    </DrawerPart>
  );
}

/** Returns which clients share the session with the server. */
function sharing(s: Server): string {
  const needs = (s.session_needs ?? []).map((n) => n.need);
  if (s.session === "per_client") return "one session each";
  if (needs.includes("state")) return "one session each, because the server keeps state for each session";
  if (needs.includes("capabilities")) return "share one session, except those with sampling, elicitation or roots, because the server lists other tools to them";
  return needs.length ? `share one session, except those with ${needs.join(" or ")}, because the server asks for it` : "share one session";
}

function Facts({ of: s, onLog }: { of: ServerDetail; onLog: () => void }) {
  const info = s.server_info;
  return (
    <DrawerPart title="Details" end={<button type="button" class="plain-button link" onClick={onLog}>Log</button>}>
      <dl class="defs">
        {info?.name && <><dt>Name</dt><dd><Visible text={[info.name, info.version].filter(Boolean).join(" ")} /></dd></>}
        {s.protocol_version && <><dt>Protocol</dt><dd class="num"><Visible text={s.protocol_version} /></dd></>}
        {!!s.pid && <><dt>Process</dt><dd class="num">{s.pid}</dd></>}
        {!!s.restarts && <><dt>Reconnects</dt><dd class="num">{number(s.restarts)}</dd></>}
        {s.last_error_at && <><dt>Last failure</dt><dd><Time at={s.last_error_at} suffix /></dd></>}
        <dt>Transport</dt><dd>{s.protocol}</dd>
        {s.sandbox && <><dt>Sandbox</dt><dd><Visible text={s.sandbox.text} /></dd></>}
        {s.session && s.protocol_version !== "2026-07-28" && <><dt>Clients</dt><dd>{sharing(s)}</dd></>}
      </dl>
      {s.sandbox?.trusted && <p class="soft">Its tools without hints count as read-only, because its sandbox can change nothing.</p>}
      {s.sandbox?.not_enforced?.map((g) => <p key={g} class="soft">Not enforced on this machine: <Visible text={g} /></p>)}
      {s.sandbox?.notes?.map((n) => <p key={n} class="soft"><Visible text={n} /></p>)}
      {s.warnings?.map((w) => <p key={w} class="soft"><Visible text={w} /></p>)}
    </DrawerPart>
  );
}

function Broken({ of: s }: { of: Server }) {
  const { line, often, variable } = useFailure(s);
  return <><Why of={s} line={line} often={often} /><div class="row wrap gap"><Fixes of={s} variable={variable} /></div></>;
}
