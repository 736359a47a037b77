import type { LogLine } from "../../api/types";
import { clock, exact } from "../../lib/format";
import { Visible } from "../../ui/words";

/** Lines of a server's log: time, where it was written, text. Ours are strong. */
export function LogLines({ lines, label, stream = false, strong, refTo, onScroll }: { lines: readonly LogLine[]; label: string; stream?: boolean; /** The line that decides. */ strong?: LogLine | undefined; refTo?: preact.Ref<HTMLPreElement>; onScroll?: (box: HTMLPreElement) => void }) {
  return (
    <pre class="json log-lines" tabIndex={0} aria-label={label} ref={refTo} onScroll={(e) => onScroll?.(e.currentTarget)}>
      {lines.map((l, i) => (
        <div key={i} class={l === strong ? "decisive" : l.stream === "mcpproxy" ? "ours" : undefined}>
          <span class="p" title={l.at && exact(l.at)}>{l.at ? clock(l.at, true) : "        "}</span>{" "}
          {stream && <span class="p of">{l.stream.padEnd(8)}</span>}{stream && " "}
          <Visible text={l.text} />
        </div>
      ))}
    </pre>
  );
}
