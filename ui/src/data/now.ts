// One clock for all relative times: it ticks only while somebody looks.

import { signal } from "@preact/signals";

export const now = signal(new Date());

setInterval(() => {
  if (document.visibilityState === "visible") now.value = new Date();
}, 10_000);
addEventListener("visibilitychange", () => document.visibilityState === "visible" && (now.value = new Date()));
