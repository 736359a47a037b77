// Times and numbers in the page.

import type { PendingCall } from "../api/types";
import { ago, exact, number, span } from "../lib/format";
import { now, second } from "../data/now";

/** A time: how long ago, exact in the title. suffix makes it "31 min ago". */
export function Time({ at, suffix = false, class: css }: { at?: string | Date; suffix?: boolean; class?: string }) {
  if (!at) return <span class="dim">–</span>;
  const date = new Date(at);
  const text = ago(date, now.value);
  const words = suffix && /^\d+ (s|min|h|d)$/.test(text) ? text + " ago" : text;
  return <time class={css} dateTime={date.toISOString()} title={exact(date)}>{words}</time>;
}

/** The time left, to the second. */
export function Left({ until }: { until: string }) {
  void second.value;
  return <time dateTime={until} title={exact(until)}>{span((Date.parse(until) - Date.now()) / 1000)}</time>;
}

/** Reports whether the client of a call still waits. Components that call it render each second. */
export function stillWaits(c: PendingCall): boolean {
  void second.value;
  return c.waits_until !== undefined && Date.parse(c.waits_until) > Date.now();
}

/** The time left to answer a pending call: first while its client waits, then until the call expires. */
export function AnswerTime({ call: c }: { call: PendingCall }) {
  return stillWaits(c) ? <span title="The client is waiting for your answer."><Left until={c.waits_until!} /> left</span> : <span title="The client stopped waiting. If it repeats the call, your answer applies.">valid <Left until={c.until} /></span>;
}

/** A number with separators; undefined is a dash. */
export function Num({ n, dim = false }: { n?: number; dim?: boolean }) {
  return n === undefined ? <span class="dim">–</span> : <span class={dim ? "num dim" : "num"}>{number(n)}</span>;
}
