import { Field } from "../../ui/field";
import { visible } from "../../lib/visible";
import type { FormField } from "./form";

const notes: Partial<Record<FormField["kind"], string>> = { strings: "One per line", json: "JSON" };
// Labels are plain text: they cannot have markup.
const plain = (text: string) => visible(text).map((p) => ("text" in p ? p.text : p.code)).join("");

/** One argument. */
export function ArgumentField({ field: f, value, mistake, onInput }: { field: FormField; value: string; mistake?: string; onInput: (value: string) => void }) {
  const note = [notes[f.kind], plain(f.description).slice(0, 300)].filter(Boolean).join(". ");
  return (
    <Field label={plain(f.name)} required={f.required} {...(note ? { note } : {})} {...(mistake ? { error: mistake } : {})}>
      {(a) => {
        const text = { ...a, value, placeholder: plain(f.example), autocomplete: "off" as const, spellcheck: false, onInput: (e: { currentTarget: { value: string } }) => onInput(e.currentTarget.value) };
        switch (f.kind) {
          case "boolean": return <select {...a} value={value} onChange={(e) => onInput(e.currentTarget.value)}><option value="">–</option><option value="true">true</option><option value="false">false</option></select>;
          case "enum": return <select {...a} value={value} onChange={(e) => onInput(e.currentTarget.value)}><option value="">–</option>{f.options.map((o, i) => <option value={String(i)} key={i}>{plain(typeof o === "string" ? o : JSON.stringify(o))}</option>)}</select>;
          case "long": return <textarea {...text} rows={3} />;
          case "strings": return <textarea {...text} rows={2} />;
          case "json": return <textarea {...text} class="field mono" rows={2} />;
          default: return <input {...text} inputMode={f.kind === "integer" ? "numeric" : f.kind === "number" ? "decimal" : undefined} />;
        }
      }}
    </Field>
  );
}
