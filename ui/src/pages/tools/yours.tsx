import { useState } from "preact/hooks";
import { api, explain, path } from "../../api/client";
import type { ToolDetail, ToolSettings } from "../../api/types";
import { Button } from "../../ui/button";
import { Dialog } from "../../ui/dialog";
import { DrawerPart } from "../../ui/drawer";
import { Field, Seg } from "../../ui/field";
import { toast } from "../../ui/toast";
import { Visible } from "../../ui/words";
import { changesOf, formOf, type Form } from "./settings";

/** The name and description that the user gave a tool, and the dialog that changes them. */
export function Yours({ tool, onChanged }: { tool: ToolDetail; onChanged: () => void }) {
  const [open, setOpen] = useState(false);
  const s = tool.settings ?? {};
  const text = s.description ?? s.add_description;
  return (
    <DrawerPart title="Your settings" end={<Button kind="quiet" small decides onClick={() => setOpen(true)}>Edit…</Button>}>
      {tool.shadowed_by && <p class="warned">Agents cannot see this tool: its name is your alias of <code>{tool.shadowed_by}</code>. It is available only at the address of its server.</p>}
      {!tool.settings ? <p class="soft">Agents see the server’s name and description.</p> : (
        <dl class="defs">
          {s.alias && <><dt>Alias</dt><dd class="mono"><Visible text={s.alias} /></dd></>}
          {text && <><dt>{s.description ? "Description" : "Added"}</dt><dd><Visible text={text} /></dd></>}
          {tool.declared_description && <><dt>Server’s description</dt><dd class="soft"><Visible text={tool.declared_description} /></dd></>}
          {s.always && <><dt>Search</dt><dd>always listed first</dd></>}
        </dl>
      )}
      {open && <Edit tool={tool} onClose={() => setOpen(false)} onChanged={onChanged} />}
    </DrawerPart>
  );
}

const modes = [{ value: "", label: "Server’s" }, { value: "replace", label: "Yours" }, { value: "add", label: "Server’s and yours" }] as const;

function Edit({ tool, onClose, onChanged }: { tool: ToolDetail; onClose: () => void; onChanged: () => void }) {
  const [form, setForm] = useState<Form>(formOf(tool.settings));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const changes = changesOf(tool.settings, form);
  const set = (patch: Partial<Form>) => setForm({ ...form, ...patch });
  const patch = (body: Partial<Record<keyof ToolSettings, string | boolean | null>>) => api.patch(path`/servers/${tool.server}/tools/${tool.tool}`, body);
  const save = async (e: Event) => {
    e.preventDefault();
    setBusy(true);
    try {
      await patch(changes);
      toast({ text: `Changed ${tool.name}`, undo: () => patch(changesOf({ ...tool.settings, ...changes } as ToolSettings, formOf(tool.settings))).then(onChanged) });
      onChanged();
      onClose();
    } catch (cause) {
      const { message, hint } = explain(cause);
      setError([message, hint].filter(Boolean).join(" "));
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Settings of ${tool.name}`} onClose={onClose}>
      <form class="dlg-form" onSubmit={save}>
        <p class="soft">Agents see your name and text instead of the server’s. Approvals and rules keep the server’s.</p>
        <Field label="Alias" note={`Empty: ${tool.tool}`}>{(a) => <input {...a} value={form.alias} maxLength={64} spellcheck={false} autocomplete="off" onInput={(e) => set({ alias: e.currentTarget.value })} />}</Field>
        <p><Seg label="Description" value={form.mode} options={modes} onChange={(mode) => set({ mode })} /></p>
        {form.mode && <Field label={form.mode === "add" ? "Text after the server’s description" : "Description"}>{(a) => <textarea {...a} rows={4} maxLength={4000} value={form.text} onInput={(e) => set({ text: e.currentTarget.value })} />}</Field>}
        <p><label><input type="checkbox" checked={form.always} onChange={(e) => set({ always: e.currentTarget.checked })} /> Always list it first in search results</label></p>
        {error && <p class="error-line" role="alert">{error}</p>}
        <div class="end"><Button onClick={onClose}>Cancel</Button><Button kind="main" type="submit" decides disabled={busy || Object.keys(changes).length === 0 || form.mode !== "" && !form.text.trim()}>Save</Button></div>
      </form>
    </Dialog>
  );
}
