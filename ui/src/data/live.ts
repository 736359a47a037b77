// Whether live rows are paused. The Activity page and its key l toggle it; the top bar shows it.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { onEvents, type LiveEvent } from "../api/events";

export const paused = signal(false);

/** Calls listener with each batch of events while the component is shown: at most once per frame. */
export function useEvents(listener: (batch: LiveEvent[]) => void): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => onEvents((batch) => latest.current(batch)), []);
}
