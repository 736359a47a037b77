// One clock for all relative times; it ticks only while the page is visible.

import { signal } from "@preact/signals";

export const now = signal(new Date());

setInterval(() => {
  if (document.visibilityState === "visible") now.value = new Date();
}, 10_000);
addEventListener("visibilitychange", () => document.visibilityState === "visible" && (now.value = new Date()));

/** Ticks while the page shows a value in seconds. */
export const second = signal(0, {
  watched: () => (timer = window.setInterval(() => second.value++, 1000)),
  unwatched: () => clearInterval(timer),
});
let timer = 0;
