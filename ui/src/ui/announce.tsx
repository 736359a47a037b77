// Announcements for screen readers: the newest text, at most every 5 s.

import { signal } from "@preact/signals";

const said = signal("");
let next = "";
let timer = 0;

/** Announces a text, such as "3 new records"; of several within 5 s, only the last one. */
export function announce(text: string): void {
  next = text;
  if (timer) return;
  const say = () => {
    timer = next ? window.setTimeout(say, 5000) : 0;
    if (next) said.value = next;
    next = "";
  };
  say();
}

export function Announcer() {
  return <p class="vh" aria-live="polite">{said.value}</p>;
}
