// Toasts at the bottom, for 8 s, with Undo if REST supports it; paused under
// pointer or focus. Ctrl Z undoes the newest.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { explain } from "../api/client";
import { useActions } from "../keys";
import { Button } from "./button";

export interface ToastText { text: string; undo?: () => Promise<unknown> | void }
interface Shown extends ToastText { id: number }

const shown = signal<readonly Shown[]>([]);
let last = 0;

/** Shows text, with Undo if undo is set. */
export function toast(t: ToastText): void {
  shown.value = [...shown.peek().slice(-2), { ...t, id: ++last }];
}

/** Shows an error and its hint. */
export function tell(error: unknown): void {
  const { message, hint } = explain(error);
  toast({ text: [message, hint].filter(Boolean).join(" ") });
}

/** Runs an action and shows its error; reports whether it succeeded. done can depend on the result. */
export async function attempt<T>(action: () => Promise<T>, done?: ToastText | ((answer: T) => ToastText)): Promise<boolean> {
  let answer: T;
  try {
    answer = await action();
  } catch (error) {
    tell(error);
    return false;
  }
  if (done) toast(typeof done === "function" ? done(answer) : done);
  return true;
}

function drop(id: number): void {
  shown.value = shown.peek().filter((t) => t.id !== id);
}

function undo(t: Shown): void {
  drop(t.id);
  void attempt(async () => t.undo!());
}

export function Toasts() {
  const newest = shown.value.findLast((t) => t.undo);
  useActions([{ key: "Ctrl+z", label: "Undo", icon: "again", when: !!newest, run: () => newest && undo(newest) }]);
  return <div class="toasts" role="status" aria-live="polite">{shown.value.map((t) => <One key={t.id} toast={t} />)}</div>;
}

function One({ toast: t }: { toast: Shown }) {
  const timer = useRef(0);
  const left = useRef(8000);
  const since = useRef(0);
  const go = () => {
    clearTimeout(timer.current);
    since.current = Date.now();
    timer.current = window.setTimeout(drop, left.current, t.id);
  };
  const hold = () => {
    clearTimeout(timer.current);
    left.current = Math.max(1500, left.current - (Date.now() - since.current));
  };
  useEffect(() => {
    go();
    return () => clearTimeout(timer.current);
  }, []);
  return (
    <div class="toast" onPointerEnter={hold} onPointerLeave={go} onFocusIn={hold} onFocusOut={go}>
      {t.text}
      {t.undo ? <Button small onClick={() => undo(t)}>Undo</Button> : <Button small onClick={() => drop(t.id)}>Close</Button>}
    </div>
  );
}
