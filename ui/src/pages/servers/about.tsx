// How a server is: why it is not there, its last day, how fast it answers, its tools.

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
import { broken, needsLogin, tools } from "./model";
import { took } from "./took";

export function About({ of: s, onLog }: { of: ServerDetail; onLog: () => void }) {
  return (
    <>
      {broken(s) && <DrawerPart title="Why it is not there"><Broken of={s} /></DrawerPart>}
      {s.enabled && s.quarantined && <DrawerPart title="Waits for review"><p>{waits(s)} <a class="link" href={href("approvals", { id: s.name })}>Review it</a></p></DrawerPart>}
      {needsLogin(s) && <DrawerPart title="Needs a login"><p>The server asks for a login, which only a person can make. Calls are refused until then.</p></DrawerPart>}
      <DrawerPart title="Availability in 24 h" end={s.since && <span>{stateSince(s.state)} <Time at={s.since} suffix /></span>}><Strip turns={s.availability} /></DrawerPart>
      <Latency of={s} />
      <Tools of={s} />
      <Facts of={s} onLog={onLog} />
    </>
  );
}

function waits(s: ServerDetail): string {
  if (s.proposed_by) return `${s.proposed_by} proposes it. Nothing of it was started or contacted.`;
  return s.stage === "definitions" ? "Its launch is approved; what it offers waits for you." : "Nothing of it was started or contacted since.";
}

const stateSince = (state: string) => own({ ready: "ready since", idle: "idle since", failed: "failed", connecting: "connecting since", needs_login: "asks since", needs_secret: "waits since", needs_variable: "waits since" }, state) ?? "stopped";

/** Calls and how long they took, in the range that the pages share, the slowest tools first. */
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
      <Loaded of={summary} title="The calls cannot be read">
        {(d) => (d.calls === 0 ? <p class="dim">No call {range.within(span, now.value)}.{d.last && <> The last one was <Time at={d.last} suffix />.</>}</p> : (
          <>
            <dl class="figures">
              <div><dt>Calls</dt><dd>{number(d.calls)}</dd></div>
              <div><dt>Failed</dt><dd>{number(d.failed)}</dd></div>
              <div><dt>Half within</dt><dd>{took(d.p50_ms)}</dd></div>
              <div><dt>95 % within</dt><dd>{took(d.p95_ms)}</dd></div>
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
      <caption class="vh">The slowest tools</caption>
      <thead><tr><th scope="col">Tool</th><th scope="col" class="n">Calls</th><th scope="col" class="n">p95</th></tr></thead>
      <tbody>{slow.map((g) => <tr key={g.key}><td><a class="mono" href={href("activity", { tool: g.key, since: span.since, until: span.until })}><Visible text={g.key.startsWith(server + ":") ? g.key.slice(server.length + 1) : g.key} /></a></td><td class="n">{number(g.calls)}</td><td class="n">{took(g.p95_ms)}</td></tr>)}</tbody>
    </table>
  );
}

const statusWords: Record<string, string> = {
  callable: "can be called", pending_approval: "wait for you", blocked: "blocked by you", disabled_by_user: "off", disabled_by_config: "off in the file", server_disabled: "off with the server",
  server_quarantined: "in quarantine", disabled_unknown: "not callable", for_clients: "for clients that can be asked",
};

function Tools({ of: s }: { of: ServerDetail }) {
  const t = tools(s);
  const by = Object.entries(s.tools ?? {}).filter(([, n]) => n > 0);
  const offers = Object.entries(s.offers ?? {}).filter(([, o]) => o.total > 0);
  return (
    <DrawerPart title="Tools" end={t && t.total > 0 && <a class="link" href={href("tools", { server: s.name })}>{count(t.total, "tool")}</a>}>
      {!t && <p class="dim">Not known{s.lazy ? ": it is lazy and was never started. Restart starts it and lists them." : ": it has never listed them."}</p>}
      {t && by.length === 0 && <p>{t.total === 0 ? "It offers none." : t.total === 1 ? "The one can be called." : `All ${number(t.total)} can be called.`}{!!s.definition_bytes && <span class="dim"> Their definitions take {bytes(s.definition_bytes)}.</span>}</p>}
      {by.length > 0 && <dl class="defs">{by.map(([word, n]) => <><dt key={word} class="num">{number(n)}</dt><dd><a class="hover" href={href("tools", { server: s.name, status: word })}>{own(statusWords, word) ?? word}</a></dd></>)}</dl>}
      {offers.length > 0 && <p class="soft">{offers.map(([kind, o]) => (kind === "instructions" ? "instructions" : count(o.total, kind.replace(/s$/, "")))).join(", ")}</p>}
      {!!s.waiting && <p><a class="link" href={href("approvals")}>{s.waiting === 1 ? "One thing waits for you" : `${number(s.waiting)} things wait for you`}</a></p>}
    </DrawerPart>
  );
}

function Facts({ of: s, onLog }: { of: ServerDetail; onLog: () => void }) {
  const info = s.server_info;
  return (
    <DrawerPart title="Facts" end={<button type="button" class="plain-button link" onClick={onLog}>Log</button>}>
      <dl class="defs">
        {info?.name && <><dt>Says it is</dt><dd><Visible text={[info.name, info.version].filter(Boolean).join(" ")} /></dd></>}
        {s.protocol_version && <><dt>Speaks</dt><dd class="num"><Visible text={s.protocol_version} /></dd></>}
        {!!s.pid && <><dt>Process</dt><dd class="num">{s.pid}</dd></>}
        {!!s.restarts && <><dt>Connected</dt><dd class="num">{number(s.restarts)} times again</dd></>}
        {s.last_error_at && <><dt>Last failure</dt><dd><Time at={s.last_error_at} suffix /></dd></>}
        <dt>Transport</dt><dd>{s.protocol}</dd>
      </dl>
      {s.warnings?.map((w) => <p key={w} class="soft"><Visible text={w} /></p>)}
    </DrawerPart>
  );
}

function Broken({ of: s }: { of: Server }) {
  const { line, often, variable } = useFailure(s);
  return <><Why of={s} line={line} often={often} /><div class="row wrap gap"><Fixes of={s} variable={variable} /></div></>;
}
