import type { ComponentChildren, TargetedKeyboardEvent } from "preact";
import { useId } from "preact/hooks";

/** A labeled field. children gets the attributes that bind the label, the note and the error. */
export function Field({ label, note, error, required = false, children }: {
  label: string; note?: ComponentChildren; error?: string; required?: boolean;
  children: (attributes: { id: string; class: string; "aria-describedby"?: string; "aria-invalid"?: "true" }) => ComponentChildren;
}) {
  const id = useId();
  const text = error ?? note;
  return (
    <div>
      <label class="lab" for={id}>{label}{required && <span class="dim" aria-hidden="true"> required</span>}</label>
      {children({ id, class: "field", ...(text ? { "aria-describedby": id + "-note" } : {}), ...(error ? { "aria-invalid": "true" as const } : {}) })}
      {text && <p id={id + "-note"} class={error ? "field-note bad" : "field-note"} role={error ? "alert" : undefined}>{text}</p>}
    </div>
  );
}

/** A search field; Esc clears it, then leaves it. The one of a page has id="page-search", for the key /. */
export function SearchField({ value, onInput, label, placeholder, id }: { value: string; onInput: (v: string) => void; label: string; placeholder?: string; id?: string }) {
  const onKey = (e: TargetedKeyboardEvent<HTMLInputElement>) => {
    if (e.key !== "Escape") return;
    e.preventDefault();
    if (value) onInput("");
    else e.currentTarget.blur();
  };
  return <input id={id} class="field" type="search" value={value} placeholder={placeholder} aria-label={label} autocomplete="off" spellcheck={false} onInput={(e) => onInput(e.currentTarget.value)} onKeyDown={onKey} />;
}

/** A segmented control. */
export function Seg<T extends string>({ value, options, onChange, label, tiny = false }: { value: T; options: readonly { value: T; label: ComponentChildren }[]; onChange: (v: T) => void; label: string; tiny?: boolean }) {
  return (
    <span class={tiny ? "seg tiny" : "seg"} role="group" aria-label={label}>
      {options.map((o) => <button type="button" key={o.value} aria-pressed={o.value === value} onClick={() => onChange(o.value)}>{o.label}</button>)}
    </span>
  );
}
