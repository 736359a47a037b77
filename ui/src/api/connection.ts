// Whether MCPProxy responds, and since when it does not. events.ts retries.

import { signal } from "@preact/signals";

export const offline = signal(false);
/** The time of the last response, which is the age of the data shown. */
export const lastAnswer = signal<Date | undefined>(undefined);
/** The time of the next retry, while offline. */
export const nextTry = signal<Date | undefined>(undefined);

export function answered(): void {
  lastAnswer.value = new Date();
  if (offline.value) offline.value = false;
}

export function unanswered(): void {
  if (!offline.value) offline.value = true;
}
