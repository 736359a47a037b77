// Labels with an icon: lanes, states, outcomes. Never color alone.

import type { ComponentChildren } from "preact";
import type { ActivityRecord, Lane as LaneName, Server } from "../api/types";
import { own } from "../lib/own";
import { Icon } from "./icon";

const laneClass = { read: "read", write: "write", destructive: "destr" } as const;

/** The lane of a tool or call; guessed adds "inferred"; quiet shows the label to screen readers only. */
export function Lane({ lane, guessed = false, quiet = false }: { lane: LaneName; guessed?: boolean; quiet?: boolean }) {
  const css = own(laneClass, lane);
  if (!css) return <span class="dim">–</span>;
  return (
    <span class={`lane ${css}`}>
      <Icon name={css} small />
      {quiet ? <span class="vh">{lane}</span> : lane}
      {guessed && <> <span class="guess">inferred</span></>}
    </span>
  );
}

export type StateKind = "ready" | "idle" | "moving" | "wait" | "bad" | "off";

/** A state with its shape: filled dot, ring, quarter, diamond, square, dash. */
export function State({ kind, children }: { kind: StateKind; children: ComponentChildren }) {
  return <span class={kind === "ready" ? "state" : `state ${kind}`}>{children}</span>;
}

/** Returns the label and the icon of a server state. */
export function serverState(s: Pick<Server, "state" | "enabled" | "quarantined" | "needs_login" | "failure" | "trouble">): { kind: StateKind; word: string } {
  if (!s.enabled) return { kind: "off", word: "disabled" };
  if (s.quarantined) return { kind: "wait", word: "needs review" };
  if (s.state === "needs_login" || s.needs_login) return { kind: "wait", word: "needs login" };
  switch (s.state) {
    case "needs_secret": return { kind: "wait", word: "needs a secret" };
    case "needs_variable": return { kind: "wait", word: "needs a variable" };
    case "ready": return { kind: "ready", word: "ready" };
    case "idle": return { kind: "idle", word: "idle" };
    case "connecting": return s.trouble ? { kind: "wait", word: "cannot download" } : { kind: "moving", word: "connecting" };
    case "failed": return { kind: "bad", word: s.failure?.startsWith("EXITED") ? "crashed" : "failed" };
    default: return { kind: "off", word: "stopped" };
  }
}

const outcomes = {
  success: { css: "ok", icon: undefined, word: "ok" },
  blocked: { css: "res block", icon: "block", word: "refused" },
  error: { css: "res err", icon: "err", word: "failed" },
  interrupted: { css: "res cut-short", icon: "cutoff", word: "interrupted" },
  pending: { css: "res run", icon: "run", word: "running" },
  held: { css: "res run", icon: "clock", word: "held" },
} as const;

/** The outcome of a call or change. */
export function Outcome({ status }: { status: ActivityRecord["status"] }) {
  const o = own<(typeof outcomes)[keyof typeof outcomes]>(outcomes, status) ?? outcomes.pending;
  return <span class={o.css}>{o.icon && <Icon name={o.icon} small />}{o.word}</span>;
}

/** A tool's name, the server faint before it. */
export function ToolName({ server, tool }: { server?: string; tool?: string }) {
  return <span class="tool">{server && <span class={tool ? "sv" : "sv whole"}>{tool ? server + ":" : server}</span>}{tool}</span>;
}

/** A short label in a box: "6 findings", "relaxed", "launch". */
export function Tag({ kind, children }: { kind?: "hot" | "warm" | "line"; children: ComponentChildren }) {
  return <span class={kind ? `tag ${kind}` : "tag"}>{children}</span>;
}
