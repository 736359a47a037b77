// Times and numbers in the page.

import { ago, exact, number } from "../lib/format";
import { now } from "../data/now";

/** A time: how long ago, exact in the title. suffix makes it "31 min ago". */
export function Time({ at, suffix = false, class: css }: { at?: string | Date; suffix?: boolean; class?: string }) {
  if (!at) return <span class="dim">–</span>;
  const date = new Date(at);
  const text = ago(date, now.value);
  const words = suffix && /^\d+ (s|min|h|d)$/.test(text) ? text + " ago" : text;
  return <time class={css} dateTime={date.toISOString()} title={exact(date)}>{words}</time>;
}

/** A number with separators; undefined is a dash. */
export function Num({ n, dim = false }: { n?: number; dim?: boolean }) {
  return n === undefined ? <span class="dim">–</span> : <span class={dim ? "num dim" : "num"}>{number(n)}</span>;
}
