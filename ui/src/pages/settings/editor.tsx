// The editor of the file, with its errors.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Mistake } from "../../api/types";
import { count } from "../../lib/format";
import { ErrorPart, Skeleton } from "../../ui/parts";
import { Visible } from "../../ui/words";
import type { Editor as Mounted } from "./codemirror";
import { hasSecrets, place, wrong } from "./model";

export function Editor({ text, mistakes, onEdit }: { text: string; mistakes: readonly Mistake[]; onEdit: (text: string) => void }) {
  const host = useRef<HTMLDivElement>(null);
  const [editor, setEditor] = useState<Mounted>();
  const [error, setError] = useState<unknown>();
  const [turn, setTurn] = useState(0);
  const latest = useRef({ text, onEdit });
  latest.current = { text, onEdit };
  const typed = useRef<string[]>([]); // texts from the editor that the page does not show yet

  useEffect(() => {
    let made: Mounted | undefined;
    let gone = false;
    import("./codemirror").then(
      ({ mount }) => {
        if (gone || !host.current) return;
        made = mount(host.current, latest.current.text, (next) => (typed.current.push(next), latest.current.onEdit(next)));
        setEditor(made);
      },
      (e) => !gone && setError(e),
    );
    return () => ((gone = true), made?.destroy());
  }, [turn]);
  useEffect(() => {
    if (!editor) return;
    const told = typed.current.indexOf(text);
    typed.current = told < 0 ? [] : typed.current.slice(told + 1);
    if (told < 0 && text !== editor.text()) editor.replace(text);
  }, [editor, text]);
  useEffect(() => editor?.mark(mistakes), [editor, mistakes, text]);
  // A new first error scrolls into view, unless the user is typing.
  const first = mistakes.find((m) => m.line > 0);
  const at = first && `${first.line} ${first.message}`;
  useEffect(() => {
    if (editor && first && !editor.focused()) editor.show(first);
  }, [editor, at]);

  if (error !== undefined) return <ErrorPart title="Could not load the editor" error={error} onRetry={() => (setError(undefined), setTurn(turn + 1))} />;
  return (
    <div class="editing">
      <div class="editor" ref={host}>{!editor && <div class="editor-wait"><Skeleton lines={8} /></div>}</div>
      {mistakes.length > 0 && (
        <section class="mistakes" aria-label="Errors">
          <h3>{count(mistakes.length, "error")}</h3>
          <Mistakes of={mistakes} onGo={editor?.goTo} />
        </section>
      )}
      {hasSecrets(text) && <p class="file-note">Secrets are shown as <span class="masked">***masked:N***</span> and kept when you save. To replace a secret, enter a new value.</p>}
    </div>
  );
}

/** Errors with their positions; onGo makes the positions buttons. */
export function Mistakes({ of, onGo }: { of: readonly Mistake[]; onGo?: (m: Mistake) => void }) {
  return (
    <div role="alert"><ul>
      {of.map((m, i) => (
        <li key={i}>
          {place(m) && (onGo && m.line > 0 ? <button type="button" class="link plain-button" onClick={() => onGo(m)}>{place(m)}</button> : <span class="dim">{place(m)}</span>)}
          <span><Visible text={wrong(m)} /></span>
        </li>
      ))}
    </ul></div>
  );
}
