// The dialog that sets secrets. REST never returns a value.

import { useEffect, useRef, useState } from "preact/hooks";
import { api, explain, path } from "../api/client";
import type { SecretView } from "../api/types";
import { useResource } from "../data/resource";
import { servers } from "../data/shared";
import { own, setOwn } from "../lib/own";
import { keptWords, needed } from "../lib/secrets";
import { Button } from "./button";
import { Dialog } from "./dialog";
import { Field } from "./field";
import { Loaded } from "./parts";
import { toast } from "./toast";

/** Asks for the missing secrets of a server, or of all servers. */
export function SecretDialog({ server, onClose }: { server?: string; onClose: () => void }) {
  const list = useResource("secrets", (signal) => api.get<{ secrets: SecretView[] }>("/secrets", undefined, signal));
  // The list is fixed when the dialog opens, so that fields do not disappear.
  const [first, setFirst] = useState<readonly SecretView[]>();
  if (list.data && !first) setFirst(needed(list.data.secrets, server));
  return (
    <Dialog title={server ? `Secrets of ${server}` : "Missing secrets"} onClose={onClose}>
      <Loaded of={list} title="Could not load secrets">{() => first && (first.length > 0 ? <Form all={first} onClose={onClose} /> : <Nothing onClose={onClose} />)}</Loaded>
    </Dialog>
  );
}

function Nothing({ onClose }: { onClose: () => void }) {
  return <><p class="soft">All secrets are set. Servers that needed one start automatically.</p><div class="end"><Button kind="main" onClick={onClose}>Close</Button></div></>;
}

function Form({ all, onClose }: { all: readonly SecretView[]; onClose: () => void }) {
  const [values, setValues] = useState<Record<string, string>>({});
  const [errors, setErrors] = useState<Record<string, string>>({});
  const [stored, setStored] = useState<readonly string[]>([]);
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  // The fields appear after the dialog took the focus.
  useEffect(() => form.current!.querySelector("input")?.focus(), []);
  const open = all.filter((s) => !stored.includes(s.name));
  const ready = open.filter((s) => own(values, s.name));
  const submit = async (e: Event) => {
    e.preventDefault();
    if (busy || !ready.length) return;
    setBusy(true);
    const failed: Record<string, string> = {};
    const done: SecretView[] = [];
    for (const s of ready) {
      try {
        done.push(await api.put<SecretView>(path`/secrets/${s.name}`, { value: own(values, s.name) }));
      } catch (cause) {
        const { message, hint } = explain(cause);
        setOwn(failed, s.name, [message, hint].filter(Boolean).join(" "));
      }
    }
    servers.reload();
    setErrors(failed);
    setStored([...stored, ...done.map((s) => s.name)]);
    setBusy(false);
    if (done.length) toast({ text: `${done.map((s) => s.name).join(", ")} ${done.length === 1 ? "is" : "are"} set, ${keptWords(done[0]!.kept)}. ${done[0]!.used_by.length ? `Used by ${[...new Set(done.flatMap((s) => s.used_by))].join(", ")}.` : ""}` });
    if (done.length === open.length) onClose();
  };
  return (
    <form class="dlg-form" ref={form} onSubmit={submit}>
      <p class="soft">Secrets are stored in the system keyring, or in an encrypted file if there is none. They are not shown again. The server starts automatically.</p>
      {open.map((s) => (
        <Field key={s.name} label={s.name} note={s.state === "locked" ? "The keyring with this secret is locked. Unlock it and restart MCPProxy, or enter the secret again." : s.used_by.length > 1 ? `Used by ${s.used_by.join(", ")}` : undefined} {...(own(errors, s.name) ? { error: own(errors, s.name)! } : {})}>
          {(a) => <input {...a} class="field mono" type="password" value={own(values, s.name) ?? ""} autocomplete="off" spellcheck={false} onInput={(e) => setValues({ ...values, [s.name]: e.currentTarget.value })} />}
        </Field>
      ))}
      <div class="end"><Button onClick={onClose}>Cancel</Button><Button kind="main" type="submit" decides disabled={busy || !ready.length}>{open.length === 1 ? "Set secret" : "Set secrets"}</Button></div>
    </form>
  );
}
