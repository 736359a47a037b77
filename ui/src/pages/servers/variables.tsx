// Environment variables or headers: names are shown, values are not.

import { useState } from "preact/hooks";
import { explain } from "../../api/client";
import { Button } from "../../ui/button";
import { Field } from "../../ui/field";
import { Visible } from "../../ui/words";

export function Variables({ label, names, fixed, start, onSave }: { label: string; names: readonly string[]; fixed: boolean; /** The variable to edit first; "" is none. */ start: string; onSave: (change: Record<string, string | null>) => Promise<void> }) {
  // null: none is edited; "": a new one.
  const [edited, edit] = useState<string | null>(start || null);
  const [error, setError] = useState("");
  const run = async (change: Record<string, string | null>) => {
    try {
      setError("");
      await onSave(change);
      edit(null);
    } catch (cause) {
      const { message, hint } = explain(cause);
      setError([message, hint].filter(Boolean).join(" "));
    }
  };
  return (
    <div class="conf vars">
      <span class="conf-name">{label}</span>
      <span class="conf-value">
        {names.length === 0 && edited === null && <span class="dim">none</span>}
        {names.map((n) => (
          <span class="var" key={n}>
            <span class="mono"><Visible text={n} /></span>
            {!fixed && <Button kind="quiet" small label={`Replace the value of ${n}`} onClick={() => edit(n)}>Replace</Button>}
            {!fixed && <Button kind="quiet" small decides label={`Remove ${n}`} onClick={() => void run({ [n]: null })}>Remove</Button>}
          </span>
        ))}
        {edited !== null && <One name={edited} onSave={(n, v) => run({ [n]: v })} onCancel={() => edit(null)} />}
        {error && <span class="error-line" role="alert">{error}</span>}
      </span>
      {!fixed && edited === null && <Button kind="quiet" small label={`Add to ${label.toLowerCase()}`} onClick={() => edit("")}>Add</Button>}
    </div>
  );
}

function One({ name, onSave, onCancel }: { name: string; onSave: (name: string, value: string) => Promise<void>; onCancel: () => void }) {
  const [n, setName] = useState(name);
  const [v, setValue] = useState("");
  const submit = (e: Event) => {
    e.preventDefault();
    if (n.trim()) void onSave(n.trim(), v);
  };
  return (
    <form class="conf-edit" onSubmit={submit} onKeyDown={(e) => e.key === "Escape" && (e.preventDefault(), onCancel())}>
      {name === "" && <Field label="Name">{(a) => <input {...a} class="field mono" value={n} autocomplete="off" spellcheck={false} onInput={(e) => setName(e.currentTarget.value)} />}</Field>}
      <Field label={name ? `New value of ${name}` : "Value"} note={<>For a secret, enter <code>{"${keyring:NAME}"}</code>. You are asked for its value, which is not stored in the file.</>}>{(a) => <input {...a} class="field mono" value={v} autocomplete="off" spellcheck={false} onInput={(e) => setValue(e.currentTarget.value)} />}</Field>
      <div class="row"><Button type="submit" small decides disabled={!n.trim()}>Save</Button><Button kind="quiet" small onClick={onCancel}>Cancel</Button></div>
    </form>
  );
}
