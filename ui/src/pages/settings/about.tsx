// Below the settings: diagnostics, this browser, paths and addresses.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import { signOut } from "../../api/signin";
import type { Diagnostics } from "../../api/types";
import { now } from "../../data/now";
import { notices, singleKeys, theme } from "../../data/prefs";
import { useResource } from "../../data/resource";
import { canNotify, permitNotices } from "../../frame/notices";
import { useServers, useStatus } from "../../data/shared";
import { useActions } from "../../keys";
import { count, span } from "../../lib/format";
import { Button } from "../../ui/button";
import { CopyButton } from "../../ui/copy";
import { Confirm } from "../../ui/dialog";
import { Seg } from "../../ui/field";
import { State, type StateKind } from "../../ui/marks";
import { Loaded } from "../../ui/parts";
import { attempt } from "../../ui/toast";
import { Visible } from "../../ui/words";
import { href } from "../../router";
import { checkPage, pieces } from "./model";

type Check = Diagnostics["checks"][number];

const states: Record<Check["state"], { kind: StateKind; word: string }> = {
  bad: { kind: "bad", word: "error" }, warn: { kind: "wait", word: "warning" }, ok: { kind: "ready", word: "passed" },
};

/** shown: the URL opens this section. */
export function Checks({ shown, turn }: { shown: boolean; turn: unknown }) {
  const checks = useResource("diagnostics", (signal) => api.get<Diagnostics>("/diagnostics", {}, signal), { turn });
  const head = useRef<HTMLHeadingElement>(null);
  const there = checks.data !== undefined;
  useEffect(() => {
    if (!shown || !there) return;
    head.current?.scrollIntoView({ block: "start" });
    head.current?.focus({ preventScroll: true });
  }, [shown, there]);
  useActions([{ label: "Run diagnostics again", icon: "again", run: checks.reload }]);
  const n = checks.data?.checks.filter((c) => c.state !== "ok").length ?? 0;
  return (
    <section aria-label="Diagnostics">
      <h2 class="sub end-row" ref={head} tabIndex={-1}>
        <span>Diagnostics{there && <span class="dim">: {n === 0 ? "no problems" : count(n, "problem")}</span>}</span>
        <Button kind="quiet" small icon="again" label="Run again" disabled={checks.loading} onClick={checks.reload} />
      </h2>
      <Loaded of={checks} title="Could not run diagnostics">
        {(d) => {
          const fine = d.checks.filter((c) => c.state === "ok");
          const list = (some: readonly Check[]) => some.length > 0 && <ul class="checks-list">{some.map((c, i) => <One key={c.code + i} check={c} />)}</ul>;
          return (
            <>
              {list([...d.checks.filter((c) => c.state === "bad"), ...d.checks.filter((c) => c.state === "warn")])}
              {fine.length > 0 && <details class="all fine" open={shown || undefined}><summary><State kind="ready">{count(fine.length, "check")} passed</State></summary>{list(fine)}</details>}
            </>
          );
        }}
      </Loaded>
    </section>
  );
}

function One({ check: c }: { check: Check }) {
  const servers = useServers().data;
  const to = checkPage(c, servers?.map((s) => s.name) ?? []);
  return (
    <li>
      <State kind={states[c.state].kind}>{states[c.state].word}</State>
      <div>
        <span class="strong"><Visible text={c.title} /></span> <span class="soft">{pieces(c.detail).map((p, i) => (p.code ? <code key={i}><Visible text={p.text} /></code> : <Visible key={i} text={p.text} />))}</span>
        {c.fix && <div class="fix"><code><Visible text={c.fix} /></code><CopyButton text={c.fix} label={`Copy fix: ${c.title}`} /></div>}
        {to && <div class="fix"><Button small href={href(to.page, to.params)}>{to.label}</Button></div>}
      </div>
    </li>
  );
}

function Line({ label, note, children }: { label: string; note: string; children: ComponentChildren }) {
  return <div class="set"><div><span class="strong">{label}</span><p class="soft">{note}</p></div><div class="row control">{children}</div></div>;
}

export function ThisBrowser() {
  const [asking, setAsking] = useState(false);
  const [refused, setRefused] = useState(false);
  const out = (everywhere: boolean) => signOut(everywhere);
  const turn = async (box: HTMLInputElement) => {
    const granted = box.checked && (await permitNotices());
    setRefused(box.checked && !granted);
    notices.value = box.checked = granted;
  };
  useActions([{ label: "Sign out", icon: "out", run: () => void attempt(() => out(false)) }, { label: "Sign out everywhere", icon: "out", run: () => setAsking(true) }]);
  return (
    <section aria-label="This browser">
      <h2 class="sub">This browser</h2>
      <Line label="Theme" note="Color theme of this browser.">
        <Seg label="Theme" value={theme.value} options={[{ value: "system", label: "System" }, { value: "light", label: "Light" }, { value: "dark", label: "Dark" }]} onChange={(v) => (theme.value = v)} />
      </Line>
      <div class="set">
        <div><label class="strong" for="single-keys">Single-key shortcuts</label><p class="soft" id="single-keys-h">Keys such as j, k and a. Ctrl K and Ctrl S always work.</p></div>
        <div class="row control"><input id="single-keys" type="checkbox" aria-describedby="single-keys-h" checked={singleKeys.value} onChange={(e) => (singleKeys.value = e.currentTarget.checked)} /></div>
      </div>
      {canNotify && (
        <div class="set">
          <div><label class="strong" for="notices">Notifications of this browser</label><p class="soft" id="notices-h">When something waits for you while this tab is in the background.{refused && " The browser refuses them: allow notifications for this page."}</p></div>
          <div class="row control"><input id="notices" type="checkbox" aria-describedby="notices-h" checked={notices.value} onChange={(e) => void turn(e.currentTarget)} /></div>
        </div>
      )}
      <Line label="Session" note="To sign in again, run mcpproxy ui.">
        <Button small decides onClick={() => void attempt(() => out(false))}>Sign out</Button>
        <Button small decides onClick={() => setAsking(true)}>Sign out everywhere…</Button>
      </Line>
      {asking && (
        <Confirm title="Sign out everywhere" action="Sign out everywhere" danger={false} onConfirm={() => out(true)} onClose={() => setAsking(false)}>
          All browsers, including this one, must sign in again. Clients and the command line are not affected.
        </Confirm>
      )}
    </section>
  );
}

export function Places({ path }: { path: string }) {
  const { data } = useStatus();
  if (!data) return null;
  const rows: [string, string][] = [["Configuration", path], ["Data", data.data_dir], ...data.surfaces.map((s): [string, string] => [`Address (${s.name})`, s.address])];
  return (
    <section aria-label="Paths and addresses">
      <h2 class="sub">Paths and addresses</h2>
      <dl class="places">
        {rows.map(([name, text]) => <div key={name}><dt>{name}</dt><dd><code>{text}</code><CopyButton text={text} label={`Copy ${name}`} /></dd></div>)}
        <div><dt>Version</dt><dd><code>{data.version}</code><span class="dim">process {data.pid}, up {span((now.value.getTime() - Date.parse(data.started_at)) / 1000)}, {count(data.activity.records, "record")}</span></dd></div>
      </dl>
    </section>
  );
}
