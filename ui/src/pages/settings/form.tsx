// The settings with labels; the others with their text from the reference.

import type { Config, Setting } from "../../api/types";
import { number } from "../../lib/format";
import { Button } from "../../ui/button";
import { Icon } from "../../ui/icon";
import { Visible } from "../../ui/words";
import type { Drafting } from "./draft";
import { facts, groups, isChanged, others, pieces, said, shown, typed, valueOf, wrong, type Words } from "./model";

interface FormProps { file: Config; of: Drafting; all: boolean; onAll: (open: boolean) => void }

export function Form({ file, of, all, onAll }: FormProps) {
  const byKey = new Map(file.settings.map((s) => [s.key, s]));
  const value = (key: string) => {
    const s = byKey.get(key);
    return s && valueOf(s, of.draft, of.validation);
  };
  const rest = others(file.settings);
  const open = all || rest.some((s) => isChanged(s, of.draft, of.validation));
  return (
    <>
      {groups.map((g) => {
        const rows = g.rows.filter((r) => byKey.has(r.key));
        return rows.length > 0 && (
          <section key={g.title} aria-label={g.title}>
            <h2 class="sub">{g.title}</h2>
            {rows.map((r) => <Row key={r.key} file={file} setting={byKey.get(r.key)!} words={r} note={r.note(value)} of={of} />)}
          </section>
        );
      })}
      <details class="all" open={open} onToggle={(e) => e.currentTarget.open !== open && onAll(e.currentTarget.open)}>
        <summary><h2 class="sub">All settings</h2><span class="dim">{number(rest.length)} more, by key</span></summary>
        {open && rest.map((s) => <Row key={s.key} file={file} setting={s} of={of} />)}
      </details>
    </>
  );
}

function Row({ file, setting: s, words, note, of }: { file: Config; setting: Setting; words?: Words; note?: string; of: Drafting }) {
  const id = "set-" + s.key;
  const value = valueOf(s, of.draft, of.validation);
  const mistake = of.mistakes.find((m) => m.key === s.key);
  const changed = isChanged(s, of.draft, of.validation);
  // Keys can be set only in a valid text.
  const broken = of.draft?.text !== undefined ? of.validation?.ok === false && of.validation.text === undefined : !!file.error;
  const title = words ? <label class="strong" for={id}>{words.label}</label> : <label class="mono name" for={id}>{s.key}</label>;
  return (
    <div class={changed ? "set chg" : "set"} data-key={s.key}>
      <div>
        {s.locked ? <span class={words ? "strong" : "mono name"}>{words?.label ?? s.key}</span> : title}
        {changed && <span class="vh"> changed</span>}
        <p class="soft" id={id + "-h"}>{note ?? <>{pieces(s.doc).map((p, i) => (p.code ? <code key={i}>{p.text}</code> : p.text))} <span class="dim">{facts(s)}</span></>}</p>
        {mistake && <p class="field-note bad" id={id + "-m"} role="alert"><Visible text={wrong(mistake)} /></p>}
      </div>
      {s.locked
        ? <div class="locked"><code>{said(value)}</code><span class="dim"><Icon name="lock" small />Can be set only in the file or with a flag.</span></div>
        : (
          <div class="row control">
            <Control setting={s} words={words} value={value} id={id} disabled={broken || of.conflict} bad={!!mistake} onChange={(v) => of.change(s, v)} />
            {said(value) !== said(s.default) && <Button kind="quiet" small icon="again" label={`Reset to default: ${said(s.default)}`} title={`Reset to default: ${said(s.default)}`} disabled={broken || of.conflict} onClick={() => of.change(s, null)} />}
          </div>
        )}
    </div>
  );
}

interface ControlProps { setting: Setting; words?: Words; value: unknown; id: string; disabled: boolean; bad: boolean; onChange: (value: unknown) => void }

function Control({ setting: s, words, value, id, disabled, bad, onChange }: ControlProps) {
  const common = { id, disabled, "aria-describedby": bad ? `${id}-h ${id}-m` : `${id}-h`, ...(bad ? { "aria-invalid": "true" as const } : {}) };
  const text = shown(value);
  const options = s.type === "boolean" ? ["true", "false"] : s.allowed;
  if (options) {
    const word = (o: string) => words?.options?.[o] ?? (s.type === "boolean" ? (o === "true" ? "On" : "Off") : o);
    return (
      <select class="field" {...common} value={text} onChange={(e) => onChange(typed(s.type, e.currentTarget.value))}>
        {(options.includes(text) ? options : [...options, text]).map((o) => <option key={o} value={o}>{word(o)}</option>)}
      </select>
    );
  }
  if (s.type === "list") {
    const lines = Array.isArray(value) ? value.length : 1;
    return <textarea class="field mono" {...common} rows={Math.min(8, Math.max(2, lines))} spellcheck={false} placeholder="One per line" value={text}
      onInput={(e) => onChange(typed(s.type, e.currentTarget.value))}
      onChange={(e) => onChange((typed(s.type, e.currentTarget.value) as string[]).map((l) => l.trim()).filter(Boolean))} />;
  }
  return (
    <>
      <input class={s.type === "string" ? "field" : "field short"} {...common} value={text} autocomplete="off" spellcheck={false} inputMode={s.type === "integer" ? "numeric" : undefined} onInput={(e) => onChange(typed(s.type, e.currentTarget.value))} />
      {words?.unit && <span class="soft">{words.unit}</span>}
    </>
  );
}
