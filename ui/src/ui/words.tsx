// Texts from servers, as data: text nodes only, invisible characters as boxes,
// differences as <ins> and <del> with their signs, findings as numbered marks.

import type { ComponentChildren } from "preact";
import { fromBytes, nest, within, type Node, type Span } from "../lib/spans";
import { visible } from "../lib/visible";
import type { Finding, Piece } from "../api/types";

/** A text in which invisible characters appear as their code, such as U+200B. */
export function Visible({ text }: { text: string }) {
  const parts = visible(text);
  if (parts.length === 1 && "text" in parts[0]!) return <>{parts[0].text}</>;
  return <>{parts.map((p, i) => ("text" in p ? p.text : <span class="cp" key={i} title={p.name}>{p.code}</span>))}</>;
}

/** A finding and the number that links it to its mark. */
export interface Numbered { no: number; finding: Finding }

/**
 * Text with a word difference and findings. text is the current text, without removed
 * pieces; the offsets of findings (UTF-8 bytes) refer to it. Without pieces the text is
 * shown as it is. Marks link to #f<no>: see FindingList.
 */
export function Words({ text, pieces, findings = [] }: { text: string; pieces?: readonly Piece[]; findings?: readonly Numbered[] }) {
  const spans: Span<Numbered>[] = fromBytes(text, findings.map((n) => ({ start: n.finding.start, end: n.finding.end, data: n })));
  const begun = new Set<Numbered>();
  if (!pieces?.length) return <p class="words">{marks(nest(text, spans), begun)}</p>;
  let at = 0;
  return (
    <p class="words">
      {pieces.map((piece, i) => {
        if (piece.kind === "removed") return <del key={i}><Sign sign="−" word="removed" /><Visible text={piece.text} /></del>;
        const inside = within(spans, at, at + piece.text.length);
        at += piece.text.length;
        const body = marks(nest(piece.text, inside), begun);
        return piece.kind === "added" ? <ins key={i}><Sign sign="+" word="added" />{body}</ins> : <span key={i}>{body}</span>;
      })}
    </p>
  );
}

function Sign({ sign, word }: { sign: string; word: string }) {
  return <span class="sign"><span aria-hidden="true">{sign}</span><span class="vh">{word}: </span></span>;
}

function marks(nodes: Node<Numbered>[], begun: Set<Numbered>): ComponentChildren {
  return nodes.map((n, i) => {
    if ("text" in n) return <Visible key={i} text={n.text} />;
    // A finding that continues in the next piece shows its number once.
    const first = n.first && !begun.has(n.mark);
    begun.add(n.mark);
    const block = n.mark.finding.severity === "block" ? " block" : "";
    return (
      <span key={i}>
        {first && <a class={"no" + block} href={`#f${n.mark.no}`} aria-label={`Finding ${n.mark.no}`}>{n.mark.no}</a>}
        <span class={"hit" + block}>{marks(n.nodes, begun)}</span>
      </span>
    );
  });
}

/** Numbers the findings in the order of the text. */
export function numbered(findings: readonly Finding[]): Numbered[] {
  return [...findings].sort((a, b) => a.path.localeCompare(b.path) || a.start - b.start || b.end - a.end).map((finding, i) => ({ no: i + 1, finding }));
}

/** The list of findings: one entry per kind, the most severe first. */
export function FindingList({ findings }: { findings: readonly Numbered[] }) {
  const kinds = Object.values(Object.groupBy(findings, ({ finding: f }) => `${f.rule} ${f.reason}`)) as Numbered[][];
  const rank = { block: 0, review: 1, note: 2 };
  kinds.sort((a, b) => rank[a[0]!.finding.severity] - rank[b[0]!.finding.severity] || a[0]!.no - b[0]!.no);
  return (
    <ul class="finds">
      {kinds.map((all) => {
        const { rule, reason, severity } = all[0]!.finding;
        return (
          <li key={`${rule} ${reason}`}>
            <span class="nos">{all.map((n) => <span class={severity === "block" ? "no block" : "no"} id={`f${n.no}`} key={n.no}>{n.no}</span>)}</span>
            <div>{reason}<br /><small><span class="mono">{rule}</span>, {severity}</small></div>
          </li>
        );
      })}
    </ul>
  );
}
