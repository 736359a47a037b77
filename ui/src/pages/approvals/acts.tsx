// The action bar below a detail, the primary action first.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { offline } from "../../api/connection";
import { useActions } from "../../keys";
import { Button, type ButtonProps } from "../../ui/button";

export interface Act {
  key: string;
  label: string;
  kind?: ButtonProps["kind"];
  icon?: ButtonProps["icon"];
  run: () => void;
}

/** How long decisions are disabled after a definition is shown, and after it changed, in ms. */
const settle = { shown: 350, changed: 1500 };

/**
 * Reports whether the item has been shown long enough to decide: a key
 * pressed twice, or a late click, must not approve something the user has not seen.
 */
export function useSettled(shown: string | undefined, changed: boolean): boolean {
  const [settled, setSettled] = useState<string>();
  useEffect(() => {
    if (shown === undefined) return;
    const timer = setTimeout(setSettled, changed ? settle.changed : settle.shown, shown);
    return () => clearTimeout(timer);
  }, [shown]);
  return shown !== undefined && settled === shown;
}

/** Draws actions as buttons with their keys; none acts before ready, nor twice at a time. */
export function ActsBar({ acts, ready, hold, note, onNext }: { acts: readonly Act[]; ready: boolean; /** Draws the buttons disabled. */ hold: boolean; note: ComponentChildren; onNext?: () => void }) {
  const run = (a: Act) => ready && !hold && !offline.peek() && a.run();
  const latest = useRef(run);
  latest.current = run;
  useActions(acts.map((a) => ({ key: a.key, label: a.label, icon: a.icon, run: () => latest.current(a) })));
  return (
    <div class="acts-bar" data-ready={ready && !hold}>
      {acts.map((a) => <Button key={a.key + a.label} kind={a.kind} icon={a.icon} cap={a.key} decides disabled={hold} onClick={() => run(a)}>{a.label}</Button>)}
      {onNext && <Button kind="quiet" cap="j" onClick={onNext}>Next</Button>}
      <p>{note}</p>
    </div>
  );
}
