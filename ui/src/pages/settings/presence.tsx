// What proves that a person decides: how it stands, and how it is changed.

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

/** shown: the address asks for it; setting: for a new passkey at once. */
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
      <Loaded of={of} title="How presence stands cannot be read">{(p) => <One of={p} setting={setting} onSet={of.set} />}</Loaded>
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
    // The passphrase, which no page is given, signs what comes after it.
    if (p.on && p.kind === "passphrase") setMade({ line: command("PUT", "/presence", { anchor }), print: await fingerprint(anchor) });
    else void set(anchor, "What widens needs your passkey now.");
  };
  return (
    <div class="set presence">
      <div>
        <span class="strong">{heading(p)}</span>
        <p class="soft"><Lead of={p} here={here} /></p>
      </div>
      <div class="row control">
        {may && here && <Button small decides onClick={() => setAsking("passkey")}>{passkey ? "Another passkey…" : "Set a passkey…"}</Button>}
        {may && passkey && <Button small decides onClick={() => setAsking("none")}>Turn off…</Button>}
        {p.may_join && passkey && <Button small decides onClick={() => void prove("/presence/join", "It is yours.")}>Prove that it is yours</Button>}
        {p.call_off && p.kind === "passkey" && <Button small decides onClick={() => void prove("/presence/reset/cancel", "The reset is called off.")}>Call the reset off</Button>}
      </div>
      {asking === "passkey" && may && here && (
        <Confirm title="Set a passkey" action="Make the passkey" danger={false} onConfirm={make} onClose={() => setAsking("")}>
          What permits agents more asks for it from then on: a fingerprint, a face, a PIN, or a security key that has one. You are asked twice: to make it, and to sign what is approved by now.
        </Confirm>
      )}
      {asking === "none" && (
        <Confirm title="Decide without a passkey" action="Turn off" onClose={() => setAsking("")}
          onConfirm={() => void set({ kind: "none", since: new Date().toISOString(), before: p.head }, "Nobody has to be here any more.")}>
          Whatever runs as you can decide in your name then. What is decided stays.
        </Confirm>
      )}
      {made && (
        <Dialog title="Your passphrase signs the passkey" onClose={() => setMade(undefined)}>
          <p class="soft">Run this in a terminal. It asks for the passphrase when it has shown this fingerprint, and no other: <code>{made.print}</code></p>
          <CommandLine text={made.line} />
          <div class="end"><Button kind="main" onClick={() => setMade(undefined)}>Close</Button></div>
        </Dialog>
      )}
    </div>
  );
}

function heading(p: Presence): string {
  if (p.void !== undefined) return "Nothing that widens counts";
  return p.on ? `What widens needs your ${p.kind}` : "Nobody has to be here";
}

function Lead({ of: p, here }: { of: Presence; here: boolean }) {
  const since = p.since && `Since ${date(new Date(p.since), now.value)}. `;
  if (p.void !== undefined) return <Text of={[p.void, p.remedy].filter(Boolean).join(" ")} />;
  if (p.on && p.kind === "passkey") return <Text of={`${since}Pages at \`${p.anchor?.origin}\` ask for it.`} />;
  if (p.on) return <Text of={`${since}It is typed in a terminal alone. To end that: \`mcpproxy presence set none\`.`} />;
  return <Text of={"Whatever runs as you can approve in your name, an agent with a shell too. To change that: `mcpproxy presence set passphrase`" + (here ? ", or a passkey here." : " or `mcpproxy presence set passkey`.")} />;
}

function Text({ of }: { of: string }) {
  return <>{pieces(of).map((p, i) => (p.code ? <code key={i}><Visible text={p.text} /></code> : <Visible key={i} text={p.text} />))}</>;
}
