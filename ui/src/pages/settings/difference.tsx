// The line difference of two versions of the file.

import { useEffect, useState } from "preact/hooks";
import { lines, tally, type Gap, type Line, type Part } from "../../lib/lines";
import { count, number } from "../../lib/format";
import { Visible } from "../../ui/words";

const most = 3000; // lines that are drawn

/** The changes from was to is; label names them. */
export function Difference({ was, is, label }: { was: string; is: string; label: string }) {
  const [parts, setParts] = useState<Part[] | "failed">();
  const [open, setOpen] = useState<readonly number[]>([]);
  useEffect(() => {
    let shown = true;
    import("diff").then(
      // Texts with nothing in common would take too long: then all lines are removed and added.
      ({ diffLines }) => shown && setParts(diffLines(was, is, { ignoreNewlineAtEof: true, timeout: 1000 }) ?? [{ value: was, removed: true }, { value: is, added: true }]),
      () => shown && setParts("failed"),
    );
    return () => void (shown = false);
  }, [was, is]);
  if (parts === undefined) return null;
  if (parts === "failed") return <p class="note-line" role="alert">Could not load the difference. Reload the page.</p>;
  const { added, removed } = tally(parts);
  if (added + removed === 0) return <p class="note-line">No differences.</p>;
  const all = lines(parts).flatMap((l): (Line | Gap)[] => (l.kind === "gap" && open.includes(l.no) ? l.lines : [l]));
  return (
    <>
      <p class="vh">{label}: {count(added, "line")} added, {number(removed)} removed.</p>
      <pre class="json diff code" tabIndex={0} role="group" aria-label={label}>
        {all.slice(0, most).map((l) => (l.kind === "gap" ? <Skipped key={"g" + l.no} gap={l} onOpen={() => setOpen([...open, l.no])} /> : <One key={l.kind + l.no} line={l} />))}
        {all.length > most && <span class="dim">{`${number(all.length - most)} more lines not shown.`}</span>}
      </pre>
    </>
  );
}

function Skipped({ gap, onOpen }: { gap: Gap; onOpen: () => void }) {
  return <button type="button" class="skipped" onClick={onOpen}>{number(gap.lines.length)} unchanged lines</button>;
}

function One({ line }: { line: Line }) {
  const no = <span class="ln" aria-hidden="true">{line.no}</span>;
  if (line.kind === "added") return <ins>{no}<span class="sg">+</span><Masked text={line.text} />{"\n"}</ins>;
  if (line.kind === "removed") return <del>{no}<span class="sg">−</span><Masked text={line.text} />{"\n"}</del>;
  return <span class="line">{no}<Masked text={line.text} />{"\n"}</span>;
}

function Masked({ text }: { text: string }) {
  return <>{text.split(/(\*\*\*masked:\d+\*\*\*)/).map((t, i) => (i % 2 === 1 ? <span key={i} class="masked" title="A secret. It is kept when you save the file.">{t}</span> : t && <Visible key={i} text={t} />))}</>;
}
