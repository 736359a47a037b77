// The configuration of a server; each setting is changed separately.

import { useState } from "preact/hooks";
import { explain } from "../../api/client";
import type { ServerDetail } from "../../api/types";
import { useStatus } from "../../data/shared";
import { Button } from "../../ui/button";
import { DrawerPart } from "../../ui/drawer";
import { Field, Seg } from "../../ui/field";
import { toast } from "../../ui/toast";
import { Visible } from "../../ui/words";
import { Variables } from "./variables";
import { parsed, settingsOf, textOf, valueOf, type Setting } from "./settings";
import { change } from "./state";

const reviewed = "If you change a reviewed launch, it needs a new review before the server starts. Approved tools stay approved.";

/** Shows the result of a change, with Undo where REST supports it. */
function saved(d: ServerDetail, label: string, after: { quarantined: boolean }, undo?: () => Promise<unknown>): void {
  const waits = after.quarantined && !d.quarantined;
  toast({ text: waits ? `Saved ${label} of ${d.name}. The new launch needs review.` : `Saved ${label} of ${d.name}.`, ...(undo && !waits ? { undo } : {}) });
}

export function Config({ of: d, variable, onChanged }: { of: ServerDetail; variable: string; onChanged: () => void }) {
  const [open, setOpen] = useState("");
  const status = useStatus();
  const fixed = !!d.proposed_by;
  const all = settingsOf(d);
  const row = (s: Setting) => (
    <Row key={s.key} of={d} setting={s} open={open === s.key} fixed={fixed} onOpen={(on) => setOpen(on ? s.key : "")} onChanged={onChanged} />
  );
  const save = async (key: string, value: unknown) => {
    saved(d, key === "env" ? "Environment" : "Headers", await change(d.name, key, value));
    onChanged();
  };
  return (
    <>
      <DrawerPart title="Launch">
        {all.filter((s) => s.launch).map(row)}
        <Variables label={d.protocol === "stdio" ? "Environment" : "Headers"} names={(d.protocol === "stdio" ? d.launch?.env : d.launch?.headers) ?? []} fixed={fixed} start={variable} onSave={(value) => save(d.protocol === "stdio" ? "env" : "headers", value)} />
        <p class="same">{fixed ? "This server is only proposed. To change it, discard the proposal and add the server yourself." : reviewed}</p>
      </DrawerPart>
      <DrawerPart title="Tools and trust">{all.filter((s) => !s.launch).map(row)}</DrawerPart>
      {!fixed && status.data && <p class="same">Stored in <code>{status.data.config_path}</code>. You can also edit the file.</p>}
    </>
  );
}

function Row({ of: d, setting: s, open, fixed, onOpen, onChanged }: { of: ServerDetail; setting: Setting; open: boolean; fixed: boolean; onOpen: (on: boolean) => void; onChanged: () => void }) {
  const text = textOf(d, s.key);
  if (open) return <Edit of={d} setting={s} text={text} onDone={() => onOpen(false)} onChanged={onChanged} />;
  return (
    <div class="conf">
      <span class="conf-name">{s.label}</span>
      <span class={text ? "conf-value" : "conf-value dim"}>{text ? <span class={s.choices ? undefined : "mono"}><Visible text={text} /></span> : s.unset}</span>
      {!fixed && <Button kind="quiet" small label={`Edit ${s.label.toLowerCase()}`} onClick={() => onOpen(true)}>Edit</Button>}
    </div>
  );
}

function Edit({ of: d, setting: s, text, onDone, onChanged }: { of: ServerDetail; setting: Setting; text: string; onDone: () => void; onChanged: () => void }) {
  const [value, setValue] = useState(text);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const save = async (e: Event) => {
    e.preventDefault();
    if (value === text) return onDone();
    setBusy(true);
    try {
      const before = valueOf(d, s.key) ?? null;
      const after = await change(d.name, s.key, parsed(s.key, value));
      saved(d, s.label, after, s.launch ? undefined : () => change(d.name, s.key, before));
      onChanged();
      onDone();
    } catch (cause) {
      const { message, hint } = explain(cause);
      setError([message, hint].filter(Boolean).join(" "));
      setBusy(false);
    }
  };
  const keys = (e: KeyboardEvent) => {
    if (e.key === "Escape") {
      e.preventDefault();
      onDone();
    }
    if (e.key === "Enter" && s.lines && (e.ctrlKey || e.metaKey)) void save(e);
  };
  const focus = (el: HTMLElement | null) => el?.focus();
  return (
    <form class="conf-edit" onSubmit={save} onKeyDown={keys}>
      {s.choices ? (
        <div role="group" aria-label={s.label}>
          <span class="lab">{s.label}</span>
          <Seg label={s.label} value={value} onChange={setValue} options={s.choices} />
          <p class={error ? "field-note bad" : "field-note"} role={error ? "alert" : undefined}>{error || s.note}</p>
        </div>
      ) : (
        <Field label={s.label} note={s.note} error={error || undefined}>
          {(a) => s.lines
            ? <textarea {...a} class="field mono" rows={Math.min(10, Math.max(3, value.split("\n").length))} value={value} spellcheck={false} ref={once(focus)} onInput={(e) => setValue(e.currentTarget.value)} />
            : <input {...a} class="field mono" value={value} autocomplete="off" spellcheck={false} ref={once(focus)} onInput={(e) => setValue(e.currentTarget.value)} />}
        </Field>
      )}
      <div class="row">
        <Button type="submit" small decides disabled={busy}>Save</Button>
        <Button kind="quiet" small onClick={onDone}>Cancel</Button>
      </div>
    </form>
  );
}

// A ref that acts when the element first appears, not at each render.
const seen = new WeakSet<HTMLElement>();
function once(f: (el: HTMLElement | null) => void) {
  return (el: HTMLElement | null) => {
    if (!el || seen.has(el)) return;
    seen.add(el);
    f(el);
  };
}
