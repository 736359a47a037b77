// Connecting a client: what is written into its file, and the acts. The Clients page
// and the first run show the same.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { api, path } from "../api/client";
import type { Change, Client, Outcome } from "../api/types";
import { useResource, type Resource } from "../data/resource";
import { clients } from "../data/shared";
import { short } from "../lib/clients";
import { argvLine } from "../lib/paste";
import { Button } from "./button";
import { copy, CopyButton } from "./copy";
import { Diff } from "./diff";
import { DrawerPart } from "./drawer";
import { Icon } from "./icon";
import { Loaded } from "./parts";
import { attempt } from "./toast";
import { Visible } from "./words";
import "./connect.css";

export type Act = "connect" | "disconnect" | "permissions";

/** What narrows a connection; empty: everything, as any agent. */
export interface Narrow { profile?: string; /** The name of a token that is made for it. */ token?: string }

/** Returns what an act would write; nothing is asked for null. */
export function usePreview(of: Client, act: Act | null, narrow: Narrow = {}): Resource<Outcome> {
  const turn = clients.state.value.at?.getTime();
  return useResource(act && `${act} ${of.id} ${JSON.stringify(narrow)}`, (signal) => api.post<Outcome>(path`/clients/${of.id}/` + act, { dry_run: true, ...narrow }, { signal }), { keep: false, turn });
}

/** Takes a change back. */
export async function undo(change: string): Promise<void> {
  await api.post<Change>("/clients/undo", { change });
  clients.reload();
}

const done: Record<Act, (name: string) => string> = {
  connect: (name) => `${name} is connected.`, disconnect: (name) => `${name} is disconnected.`, permissions: (name) => `The permissions of ${name} are written.`,
};

/** Does it, and says what a person does next, with Undo. */
export async function perform(of: Client, act: Act, narrow: Narrow = {}): Promise<boolean> {
  return attempt(async () => {
    const o = await api.post<Outcome>(path`/clients/${of.id}/` + act, { dry_run: false, ...narrow });
    clients.reload();
    return o;
  }, (o) => {
    const text = [o.written ? done[act](of.name) : `There was nothing to change for ${of.name}.`, o.next].filter(Boolean).join(" ");
    return o.change ? { text, undo: () => undo(o.change!) } : { text };
  });
}

/** What an act writes, with its warnings; or that there is nothing to write. */
export function Written({ preview, title = "What is written", name }: { preview: Resource<Outcome>; title?: string; name: string }) {
  const o = preview.data;
  return (
    <DrawerPart title={title} end={o?.path && <span class="mono cut" title={o.target ?? o.path}><Visible text={short(o.path)} /></span>}>
      <Loaded of={preview} title="It cannot be said what would be written">
        {(o) => (
          <>
            {o.command && <Snippet where="Its own command, which is run" text={argvLine(o.command)} label={`Copy the command of ${name}`} />}
            {o.changed && o.difference && <Diff text={o.difference} label={`${title} for ${name}`} />}
            {!o.changed && <p class="soft">Nothing: it is so already.</p>}
            {o.target && o.target !== o.path && <p class="same">The file is a link; <code><Visible text={short(o.target)} /></code> is written.</p>}
            {o.warnings?.map((w) => <p class="remark" key={w}><Icon name="err" small /><span><Visible text={w} /></span></p>)}
            {o.changed && <p class="same">Comments and order stay. A copy of the file as it is now is kept, so that this can be undone.</p>}
          </>
        )}
      </Loaded>
    </DrawerPart>
  );
}

/** A text to run or to paste, with a way to copy it. */
export function Snippet({ where, text, label }: { where: ComponentChildren; text: string; label: string }) {
  return (
    <figure class="snippet">
      <figcaption><span class="dim">{where}</span><CopyButton label={label} text={text} /></figcaption>
      <pre class="json wrap" tabIndex={0} role="group" aria-label={label}><Visible text={text} /></pre>
    </figure>
  );
}

/** The entry to write by hand, and the client's own command where it has one. */
export function ByHand({ of }: { of: Client }) {
  return (
    <>
      {of.command && <Snippet where="Run in a terminal" text={argvLine(of.command)} label={`Copy the command of ${of.name}`} />}
      <Snippet where={<>{of.command ? "Or in" : "In"} <span class="mono"><Visible text={short(of.entry.path)} /></span></>} text={of.entry.text} label={`Copy the entry for ${of.name}`} />
    </>
  );
}

/** Write it, and Copy instead. */
export function ConnectButtons({ of, preview, narrow }: { of: Client; preview: Resource<Outcome>; narrow?: Narrow }) {
  const [busy, setBusy] = useState(false);
  const write = async () => {
    setBusy(true);
    await perform(of, "connect", narrow);
    setBusy(false);
  };
  return (
    <>
      <Button kind="main" decides disabled={busy || !preview.data} onClick={write}>Write it</Button>
      <Button onClick={() => void copy(of.entry.text)}>Copy instead</Button>
    </>
  );
}
