import { useMemo, useState } from "preact/hooks";
import { lines, masks, type Token } from "../lib/json";
import { Button } from "./button";
import { CopyButton } from "./copy";
import { Visible } from "./words";

const shownLines = 400;

/** A JSON value: short objects on one line, masked values as boxes, copy and wrap. It is drawn in parts when it is long. */
export function Json({ value, label, note }: { value: unknown; label: string; /** Below, such as "The first 64 KB of 1.8 MB are in the log." */ note?: string }) {
  const [wrap, setWrap] = useState(true);
  const [all, setAll] = useState(false);
  const whole = useMemo(() => lines(value), [value]);
  const shown = all ? whole : whole.slice(0, shownLines);
  return (
    <div class="json-box">
      <div class="tools">
        <Button kind="quiet" small pressed={wrap} onClick={() => setWrap(!wrap)}>Wrap</Button>
        <CopyButton label={`Copy ${label}`} text={() => JSON.stringify(value, null, 2)} />
      </div>
      <pre class={wrap ? "json wrap" : "json"} tabIndex={0} aria-label={label}>
        {shown.map((line, i) => <>{i > 0 && "\n"}{line.map(token)}</>)}
      </pre>
      {shown.length < whole.length && <Button kind="quiet" small onClick={() => setAll(true)}>{`Show ${whole.length - shown.length} more lines`}</Button>}
      {note && <p class="same">{note}</p>}
    </div>
  );
}

/** A text that may hold masked values: an answer, a log. */
export function Text({ text, label, wrap = true }: { text: string; label: string; wrap?: boolean }) {
  return <pre class={wrap ? "json wrap" : "json"} tabIndex={0} aria-label={label}>{masks(text).map(token)}</pre>;
}

function token(t: Token, i: number) {
  if (t.kind === "masked") return <span class="masked" key={i} title="Masked: the value is not in the log">{t.text}</span>;
  const css = { key: "k", mark: "p", text: undefined }[t.kind];
  return css ? <span class={css} key={i}><Visible text={t.text} /></span> : <Visible text={t.text} key={i} />;
}
