// Presence: its state, and the actions that change it.

import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../../api/client";
import type { Presence } from "../../api/types";
import { now } from "../../data/now";
import { useResource } from "../../data/resource";
import { command } from "../../lib/command";
import { date } from "../../lib/format";
import type { Anchor } from "../../lib/presence";
import { fingerprint } from "../../lib/sign";
import { Button } from "../../ui/button";
import { CommandLine } from "../../ui/command-line";
import { Confirm, Dialog } from "../../ui/dialog";
import { Loaded } from "../../ui/parts";
import { attempt } from "../../ui/toast";
import { Visible } from "../../ui/words";
import { pieces } from "./model";
import { atLocalhost, makePasskey } from "./passkey";

/** shown: the URL opens this section; setting: the URL opens the passkey dialog. */
export function Presences({ shown, setting, turn }: { shown: boolean; setting: boolean; turn: unknown }) {
  const of = useResource("presence", (signal) => api.get<Presence>("/presence", {}, signal), { turn });
  const head = useRef<HTMLHeadingElement>(null);
  const there = of.data !== undefined;
  useEffect(() => {
    if (!shown || !there) return;
    head.current?.scrollIntoView({ block: "start" });
    head.current?.focus({ preventScroll: true });
  }, [shown, there]);
  return (
    <section aria-label="Presence">
      <h2 class="sub" ref={head} tabIndex={-1}>Presence</h2>
      <Loaded of={of} title="Could not load presence">{(p) => <One of={p} setting={setting} onSet={of.set} />}</Loaded>
    </section>
  );
}

function One({ of: p, setting, onSet }: { of: Presence; setting: boolean; onSet: (p: Presence) => void }) {
  const [asking, setAsking] = useState<"" | "passkey" | "none">(setting ? "passkey" : "");
  const [made, setMade] = useState<{ line: string; print: string }>();
  const set = (anchor: Anchor, text: string) => attempt(async () => onSet(await api.put<Presence>("/presence", { anchor })), { text });
  const prove = (route: string, text: string) => attempt(async () => onSet(await api.post<Presence>(route)), { text });
  const may = p.void === undefined || p.may_set;
  const here = atLocalhost();
  const passkey = p.on && p.kind === "passkey";
  const make = async () => {
    const anchor = await makePasskey(p.head);
    // The current passphrase must sign the passkey, in a terminal.
    if (p.on && p.kind === "passphrase") setMade({ line: command("PUT", "/presence", { anchor }), print: await fingerprint(anchor) });
    else void set(anchor, "Changes that grant more access now require your passkey.");
  };
  return (
    <div class="set presence">
      <div>
        <span class="strong">{heading(p)}</span>
        <p class="soft"><Lead of={p} here={here} /></p>
      </div>
      <div class="row control">
        {may && here && <Button small decides onClick={() => setAsking("passkey")}>{passkey ? "Replace passkey…" : "Set up passkey…"}</Button>}
        {may && passkey && <Button small decides onClick={() => setAsking("none")}>Turn off…</Button>}
        {p.may_join && passkey && <Button small decides onClick={() => void prove("/presence/join", "Ownership confirmed.")}>Confirm ownership</Button>}
        {p.call_off && p.kind === "passkey" && <Button small decides onClick={() => void prove("/presence/reset/cancel", "Reset canceled.")}>Cancel reset</Button>}
      </div>
      {asking === "passkey" && may && here && (
        <Confirm title="Set up a passkey" action="Create passkey" danger={false} onConfirm={make} onClose={() => setAsking("")}>
          Changes that grant agents more access will require it: a fingerprint, a face, a PIN or a security key. You are asked twice: to create it, and to sign the current approvals.
        </Confirm>
      )}
      {asking === "none" && (
        <Confirm title="Turn off presence" action="Turn off" onClose={() => setAsking("")}
          onConfirm={() => void set({ kind: "none", since: new Date().toISOString(), before: p.head }, "Presence is off.")}>
          Any program that runs under your account can then approve changes. Current approvals stay.
        </Confirm>
      )}
      {made && (
        <Dialog title="Sign the passkey with your passphrase" onClose={() => setMade(undefined)}>
          <p class="soft">Run this in a terminal. Enter the passphrase only if it shows this fingerprint: <code>{made.print}</code></p>
          <CommandLine text={made.line} />
          <div class="end"><Button kind="main" onClick={() => setMade(undefined)}>Close</Button></div>
        </Dialog>
      )}
    </div>
  );
}

function heading(p: Presence): string {
  if (p.void !== undefined) return "Changes that grant more access are not applied";
  return p.on ? `Changes that grant more access require your ${p.kind}` : "Presence is off";
}

function Lead({ of: p, here }: { of: Presence; here: boolean }) {
  const since = p.since && `Since ${date(new Date(p.since), now.value)}. `;
  if (p.void !== undefined) return <Text of={[p.void, p.remedy].filter(Boolean).join(" ")} />;
  if (p.on && p.kind === "passkey") return <Text of={`${since}It works on pages at \`${p.anchor?.origin}\`.`} />;
  if (p.on) return <Text of={`${since}You enter it in a terminal only. To turn it off, run \`mcpproxy presence set none\`.`} />;
  return <Text of={"Any program that runs under your account, such as an agent with a shell, can approve changes. To turn presence on, run `mcpproxy presence set passphrase`" + (here ? " or set up a passkey here." : " or `mcpproxy presence set passkey`.")} />;
}

function Text({ of }: { of: string }) {
  return <>{pieces(of).map((p, i) => (p.code ? <code key={i}><Visible text={p.text} /></code> : <Visible key={i} text={p.text} />))}</>;
}
