import { diffLines } from "../lib/clients";
import { Visible } from "./words";

/** A line difference of a file, from REST. */
export function Diff({ text, label }: { text: string; label: string }) {
  return (
    <pre class="json wrap diff" tabIndex={0} role="group" aria-label={label}>
      {diffLines(text).map((l, i) => {
        if (l.kind === "added") return <ins key={i}>{"+ "}<Visible text={l.text} />{"\n"}</ins>;
        if (l.kind === "removed") return <del key={i}>{"− "}<Visible text={l.text} />{"\n"}</del>;
        return <span class="p" key={i}>{"  "}<Visible text={l.text} />{"\n"}</span>;
      })}
    </pre>
  );
}
