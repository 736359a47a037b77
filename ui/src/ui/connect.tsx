// Connecting a client: the preview of its file, and the actions. The Clients page
// and the first run show the same.

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { api, path } from "../api/client";
import type { Change, Client, Outcome, Surface } from "../api/types";
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

/** The surface and the restrictions of a connection; empty: the recommended surface, no restrictions. */
export interface Connection { surface?: Surface; profile?: string; /** The name of a token to create. */ token?: string }

/** Returns the preview of an action; null requests nothing. */
export function usePreview(of: Client, act: Act | null, connection: Connection = {}): Resource<Outcome> {
  const turn = clients.state.value.at?.getTime();
  return useResource(act && `${act} ${of.id} ${JSON.stringify(connection)}`, (signal) => api.post<Outcome>(path`/clients/${of.id}/` + act, { dry_run: true, ...connection }, { signal }), { keep: false, turn });
}

/** Undoes a change. */
export async function undo(change: string): Promise<void> {
  await api.post<Change>("/clients/undo", { change });
  clients.reload();
}

const done: Record<Act, (name: string) => string> = {
  connect: (name) => `Connected ${name}.`, disconnect: (name) => `Disconnected ${name}.`, permissions: (name) => `Saved the permissions of ${name}.`,
};

/** Runs an action and shows the next step, with Undo. */
export async function perform(of: Client, act: Act, connection: Connection = {}): Promise<boolean> {
  return attempt(async () => {
    const o = await api.post<Outcome>(path`/clients/${of.id}/` + act, { dry_run: false, ...connection });
    clients.reload();
    return o;
  }, (o) => {
    const text = [o.written ? done[act](of.name) : `No changes for ${of.name}.`, o.next].filter(Boolean).join(" ");
    const changes = [...new Set([o.rules?.change, o.change])].filter((c) => c !== undefined); // the latest first
    return changes.length ? { text, undo: async () => { for (const c of changes) await undo(c); } } : { text };
  });
}

/** The preview of an action, with its warnings. */
export function Written({ preview, title = "File changes", name }: { preview: Resource<Outcome>; title?: string; name: string }) {
  const o = preview.data;
  return (
    <DrawerPart title={title} end={o?.path && <span class="mono cut" title={o.target ?? o.path}><Visible text={short(o.path)} /></span>}>
      <Loaded of={preview} title="Could not load the preview">
        {(o) => (
          <>
            {o.command && <Snippet where="Command to run" text={argvLine(o.command)} label={`Copy command for ${name}`} />}
            {o.changed && o.difference && <Diff text={o.difference} label={`${title} for ${name}`} />}
            {o.rules && <p class="same">Permission rules in <span class="mono" title={o.rules.path}><Visible text={short(o.rules.path)} /></span>:</p>}
            {o.rules && <Diff text={o.rules.difference} label={`Permission rules for ${name}`} />}
            {!o.changed && <p class="soft">No changes needed.</p>}
            {o.target && o.target !== o.path && <p class="same">The file is a symlink to <code><Visible text={short(o.target)} /></code>.</p>}
            {o.warnings?.map((w) => <p class="remark" key={w}><Icon name="err" small /><span><Visible text={w} /></span></p>)}
            {o.changed && <p class="same">Comments and order are kept. A backup of the file lets you undo this.</p>}
          </>
        )}
      </Loaded>
    </DrawerPart>
  );
}

/** A text to run or paste, with a copy button. */
export function Snippet({ where, text, label }: { where: ComponentChildren; text: string; label: string }) {
  return (
    <figure class="snippet">
      <figcaption><span class="dim">{where}</span><CopyButton label={label} text={text} /></figcaption>
      <pre class="json wrap" tabIndex={0} role="group" aria-label={label}><Visible text={text} /></pre>
    </figure>
  );
}

/** The entry for manual setup, and the command of the client if it has one. */
export function ByHand({ of }: { of: Client }) {
  return (
    <>
      {of.command && <Snippet where="Run in a terminal" text={argvLine(of.command)} label={`Copy command for ${of.name}`} />}
      <Snippet where={<>{of.command ? "Or in" : "In"} <span class="mono"><Visible text={short(of.entry.path)} /></span></>} text={of.entry.text} label={`Copy entry for ${of.name}`} />
    </>
  );
}

/** The buttons that write the entry, or copy the recommended one. */
export function ConnectButtons({ of, preview, connection = {} }: { of: Client; preview: Resource<Outcome>; connection?: Connection }) {
  const [busy, setBusy] = useState(false);
  const write = async () => {
    setBusy(true);
    await perform(of, "connect", connection);
    setBusy(false);
  };
  return (
    <>
      <Button kind="main" decides disabled={busy || !preview.data} onClick={write}>Write to file</Button>
      {!connection.surface && <Button onClick={() => void copy(of.entry.text)}>Copy entry</Button>}
    </>
  );
}
