import { Fragment, type ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { lines, masks, type Token } from "../lib/json";
import { Button } from "./button";
import { CopyButton } from "./copy";
import { DrawerPart } from "./drawer";
import { Visible } from "./words";

const shownLines = 400;

/** A JSON value: short objects on one line, masked values as boxes; long ones in parts. */
export function Json({ value, label, wrap = false, note }: { value: unknown; label: string; wrap?: boolean; /** Below, such as "The first 64 KB of 1.8 MB are in the log." */ note?: ComponentChildren }) {
  const [all, setAll] = useState(false);
  const whole = useMemo(() => lines(value), [value]);
  const shown = all ? whole : whole.slice(0, shownLines);
  return (
    <>
      <pre class={wrap ? "json wrap" : "json"} tabIndex={0} aria-label={label}>
        {shown.map((line, i) => <Fragment key={i}>{i > 0 && "\n"}{line.map(token)}</Fragment>)}
      </pre>
      {shown.length < whole.length && <Button kind="quiet" small onClick={() => setAll(true)}>{`Show ${whole.length - shown.length} more lines`}</Button>}
      {note && <p class="same">{note}</p>}
    </>
  );
}

/** A part of a drawer with a JSON value, with end, Wrap and Copy in its head. */
export function JsonPart({ title, value, end, note }: { title: string; value: unknown; end?: ComponentChildren; note?: ComponentChildren }) {
  const [wrap, setWrap] = useState(false);
  const name = title.toLowerCase();
  const buttons = <>{end}<Button kind="quiet" small pressed={wrap} onClick={() => setWrap(!wrap)}>Wrap</Button><CopyButton label={`Copy ${name}`} text={() => JSON.stringify(value, null, 2)} /></>;
  return <DrawerPart title={title} end={buttons}><Json value={value} label={name} wrap={wrap} note={note} /></DrawerPart>;
}

/** A text with masked values: a result, a log. */
export function Text({ text, label, wrap = true }: { text: string; label: string; wrap?: boolean }) {
  return <pre class={wrap ? "json wrap" : "json"} tabIndex={0} aria-label={label}>{masks(text).map(token)}</pre>;
}

function token(t: Token, i: number) {
  if (t.kind === "masked") return <span class="masked" key={i} title="Masked: the value is not stored">{t.text}</span>;
  const css = { key: "k", mark: "p", text: undefined }[t.kind];
  return css ? <span class={css} key={i}><Visible text={t.text} /></span> : <Visible text={t.text} key={i} />;
}
