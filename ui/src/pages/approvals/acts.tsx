// The bar below a detail: what can be decided, the primary action first.

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

/** Decisions rest this long when a definition is shown, and when another one has taken its place. */
const settle = { shown: 350, changed: 1500 };

/**
 * Returns whether what is shown has been there long enough to be decided about: a key
 * pressed twice, or a click on its way, must not approve what nobody has seen.
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
