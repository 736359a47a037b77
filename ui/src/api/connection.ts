// Whether MCPProxy answers, and since when not. events.ts tries again.

import { signal } from "@preact/signals";

export const offline = signal(false);
/** The time of the last response, which is the age of the data shown. */
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
