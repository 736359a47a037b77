// Whether MCPProxy answers, and since when not. events.ts tries again.

import { signal } from "@preact/signals";

export const offline = signal(false);
/** When the last answer came: what is shown was true then. */
export const lastAnswer = signal<Date | undefined>(undefined);
/** When the next try is, while offline. */
export const nextTry = signal<Date | undefined>(undefined);

export function answered(): void {
  lastAnswer.value = new Date();
  if (offline.value) offline.value = false;
}

export function unanswered(): void {
  if (!offline.value) offline.value = true;
}
