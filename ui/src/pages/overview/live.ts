// When to reload the figures of the page: after events, not more often
// than a limit, and each minute, since the time range moves.

import { useEffect, useState } from "preact/hooks";
import type { LiveEvent } from "../../api/events";
import { useEvents } from "../../data/live";
import { now } from "../../data/now";

/** Returns a number that changes when figures are stale, at most once in ms. */
export function useTurn(stale: (e: LiveEvent) => boolean, ms = 2000): number {
  const [turn, setTurn] = useState(0);
  const [wait] = useState({ timer: 0, again: false });
  const next = () => {
    if (wait.timer) return void (wait.again = true);
    setTurn((n) => n + 1);
    wait.timer = window.setTimeout(() => {
      wait.timer = 0;
      if (wait.again) next();
      wait.again = false;
    }, ms);
  };
  useEvents((batch) => batch.some(stale) && next());
  useEffect(() => () => clearTimeout(wait.timer), []);
  const minute = Math.floor(now.value.getTime() / 60_000);
  return minute * 1e6 + turn;
}

/** Reports whether a call or refusal has ended, or everything may have changed. */
export function isCall(e: LiveEvent): boolean {
  return e.name === "reset" || (e.name === "activity" && (e.kind === "tool_call.completed" || e.kind === "policy_decision"));
}
