// Keyboard shortcuts. Pages register actions; the newest one takes precedence, so that a drawer
// gets Esc before its page. Single keys are ignored while a field has focus.

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { singleKeys } from "./data/prefs";

export interface Action {
  /** For example "a", "?", "Escape", "Ctrl+k", or "g o" for a sequence. Absent: only in the palette. */
  key?: string;
  /** The label in the palette and in the list of shortcuts. Absent: in neither. */
  label?: string;
  run: () => void;
  /** Not available while false. */
  when?: boolean;
  icon?: import("./ui/icon").IconName;
}

/** All available actions, newest last. */
export const actions = signal<readonly Action[]>([]);

/** Registers actions while the component is shown. */
export function useActions(list: readonly Action[]): void {
  const latest = useRef(list);
  latest.current = list;
  const shape = list.map((a) => `${a.key ?? ""}|${a.label ?? ""}|${a.when !== false}`).join("\n");
  useEffect(() => {
    const mine = latest.current.filter((a) => a.when !== false).map((a) => {
      const i = latest.current.indexOf(a);
      return { ...a, run: () => latest.current[i]?.run() };
    });
    actions.value = [...actions.peek(), ...mine];
    return () => (actions.value = actions.peek().filter((a) => !mine.includes(a as (typeof mine)[number])));
  }, [shape]);
}

/** Returns the keycaps of a shortcut: ["g", "o"], ["Ctrl", "K"]. */
export function caps(key: string): string[] {
  return key.split(/[ +]/).map((k) => ({ Escape: "Esc", Enter: "⏎", " ": "Space", k: key.includes("+") ? "K" : "k", z: key.includes("+") ? "Z" : "z", s: key.includes("+") ? "S" : "s" })[k] ?? k);
}

let before = "";
let beforeTimer = 0;

function onKey(e: KeyboardEvent): void {
  if (e.defaultPrevented || e.isComposing) return;
  const target = e.composedPath()[0] ?? e.target; // also in a shadow root, such as the editor of Settings
  const chord = (e.ctrlKey || e.metaKey) && !e.altKey ? "Ctrl+" + e.key.toLowerCase() : "";
  if (chord) {
    // The field handles Ctrl Z itself.
    if (chord === "Ctrl+k" || chord === "Ctrl+s" || !inField(target)) offer(chord, e);
    return;
  }
  if (e.altKey || e.ctrlKey || e.metaKey) return;
  if (document.querySelector("dialog[open]")) return; // a dialog has its own keys
  if (e.key === "Escape") return void offer("Escape", e);
  if (inField(target) || !singleKeys.peek()) return;
  // A key that is held down repeats navigation, never a decision.
  if (e.repeat && e.key !== "j" && e.key !== "k") return;
  // Enter and Space activate the focused element. Space does not activate a link.
  const own = { Enter: "a, button, summary, [role=tab], [role=option]", " ": "button, summary, input, [role=tab], [role=option]" }[e.key];
  if (own && (target as Element).closest(own)) return;
  const sequence = before ? `${before} ${e.key}` : "";
  clearBefore();
  if (sequence && offer(sequence, e)) return;
  if (offer(e.key, e)) return;
  if (actions.peek().some((a) => a.key?.startsWith(e.key + " "))) {
    before = e.key;
    beforeTimer = window.setTimeout(clearBefore, 1200);
  }
}

function clearBefore(): void {
  clearTimeout(beforeTimer);
  before = "";
}

function offer(key: string, e: KeyboardEvent): boolean {
  const action = actions.peek().findLast((a) => a.key === key);
  if (!action) return false;
  e.preventDefault();
  action.run();
  return true;
}

export function inField(target: EventTarget | null): boolean {
  const el = target as HTMLElement | null;
  return !!el?.closest?.("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable=true]");
}

addEventListener("keydown", onKey);
