import { useEffect, useRef } from "preact/hooks";
import type { Lane as LaneName, SearchAnswer, Tool } from "../../api/types";
import { useActions } from "../../keys";
import { count } from "../../lib/format";
import { go, href } from "../../router";
import { Lane, Tag, ToolName } from "../../ui/marks";
import { Time } from "../../ui/values";
import { Visible } from "../../ui/words";
import { foundWords, marked, summary } from "./marked";
import type { Query } from "./query";

/** The search results that an agent gets, in order. */
export function Hits({ answer, q }: { answer: SearchAnswer; q: Query }) {
  const box = useRef<HTMLOListElement>(null);
  const to = (id: string) => href("tools", { q: q.q, lane: q.lane, id });
  const move = (by: number) => {
    const links = [...(box.current?.querySelectorAll<HTMLElement>("li > a") ?? [])];
    const open = answer.tools.findIndex((t) => t.name === q.id);
    const from = links.indexOf(document.activeElement as HTMLElement);
    const next = Math.min(Math.max((q.id && open >= 0 ? open : from) + by, 0), links.length - 1);
    links[next]?.focus();
    if (q.id && answer.tools[next]) go(to(answer.tools[next].name), { replace: true });
  };
  useActions([{ key: "j", label: "Next", run: () => move(1) }, { key: "k", label: "Previous", run: () => move(-1) }]);
  // A new query starts at its best result.
  useEffect(() => box.current?.scrollTo(0, 0), [answer.query]);
  return (
    <ol class="hits" ref={box}>
      {answer.tools.map((t, i) => (
        <li key={t.name}>
          <a href={to(t.name)} aria-current={t.name === q.id ? "true" : undefined}>
            <span class="rank">{i + 1}</span>
            <Score value={t.score ?? 0}>{(t.score ?? 0).toFixed(2)}</Score>
            <div class="what">
              <div class="row"><span class="cut"><ToolName server={t.server} tool={t.tool} /></span>{t.settings?.alias && <Tag kind="line">alias {t.settings.alias}</Tag>}{t.settings?.always && <Tag kind="line">always</Tag>}<Looks tool={t} /></div>
              <p class="cut"><Marked text={summary(t.description) || t.title || ""} found={foundWords(t.why)} /></p>
            </div>
            <div class="meta"><Lane lane={laneOf(t)} /><div>{t.calls ? <>{count(t.calls, "call")}, <Time at={t.last_used} suffix /></> : "never called"}</div></div>
          </a>
        </li>
      ))}
    </ol>
  );
}

/** The lane of a tool that a search found. */
export function laneOf(t: Pick<Tool, "call_with">): LaneName {
  return t.call_with.replace("call_tool_", "") as LaneName;
}

// Only if the inferred lane is not the effective one.
function Looks({ tool }: { tool: Tool }) {
  if (tool.deprecated) return <Tag kind="line">deprecated</Tag>;
  return tool.inferred_operation && tool.inferred_operation !== laneOf(tool) ? <Tag>looks {tool.inferred_operation === "destructive" ? "destructive" : `like a ${tool.inferred_operation}`}</Tag> : null;
}

/** Text with the matching words marked. */
export function Marked({ text, found }: { text: string; found: ReadonlySet<string> }) {
  return <>{marked(text, found).map((p, i) => (p.mark ? <mark key={i}>{p.text}</mark> : <Visible key={i} text={p.text} />))}</>;
}

/** A bar from 0 to 1 with its label. */
export function Score({ value, children }: { value: number; children: string }) {
  return (
    <span class="score">
      <svg viewBox="0 0 40 6" aria-hidden="true"><rect class="off" width="40" height="6" rx="1" /><rect class="on" width={Math.max(0, Math.min(1, value)) * 40} height="6" rx="1" /></svg>
      {children}
    </span>
  );
}
