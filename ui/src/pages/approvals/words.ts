// The sentences of the page: what a verdict means for who decides.

import type { Finding, Lane, PendingCall } from "../../api/types";
import { clock, count, date, number, spelled } from "../../lib/format";
import { byWords } from "../../lib/who";
import type { Diff } from "./decide";
import { object, parameters } from "./definition";

export interface Said { kind: "hot" | "warm" | "calm"; icon: "shield" | "shield-ok" | "destr" | "block" | "write" | "read" | "clock"; strong: string; text: string }

const articles: Record<Lane, string> = { read: "a read", write: "a write", destructive: "destructive" };

/** Returns what heads the detail: the gravest thing first. was is the lane of what was accepted. */
export function verdict(d: Diff, was: Lane, is: Lane): Said {
  if (d.reason === "blocked") return { kind: "calm", icon: "block", strong: "You have blocked this definition.", text: "None of it is accepted by itself; no agent can use it." };
  if (!d.reason) return { kind: "calm", icon: "shield-ok", strong: "There is nothing to decide.", text: "What it says now is approved." };
  const n = d.findings.length;
  if (d.verdict === "block") {
    const grave = d.findings.filter((f) => f.severity === "block").length;
    const of = grave === n ? `${n === 1 ? "The finding is" : `All ${spelled(n).toLowerCase()} findings are`}` : `${spelled(grave)} of ${spelled(n).toLowerCase()} findings ${grave === 1 ? "is" : "are"}`;
    return { kind: "hot", icon: "shield", strong: "Looks poisoned.", text: `${of} of a kind that is only seen in attacks. What an agent would read is marked below; nothing of it has reached one.` };
  }
  if (d.loosened?.length) return { kind: "warm", icon: "destr", strong: "It calls itself more harmless than before.", text: loosened(was, is) };
  if (d.verdict === "incomplete") return { kind: "warm", icon: "shield", strong: "The scanner could not read all of it.", text: "Read the definition yourself before you decide." };
  if (n > 0 && d.verdict !== "clean") return { kind: "warm", icon: "shield", strong: `${n === 1 ? "One finding" : `${spelled(n)} findings`} to look at.`, text: "Attacks have it, and so do honest tools. What an agent would read is marked below; decide by what it is for." };
  return { kind: "calm", icon: "shield-ok", strong: "The scanner finds nothing in it.", text: d.approved ? "Look at what changed, then decide." : "Look at what it says, then decide." };
}

function loosened(was: Lane, is: Lane): string {
  if (was === is) return `It would still be called as ${articles[is]}, but what it says of its effects counts for less.`;
  const asked = was === "destructive" ? "a client that asks you only about destructive calls would no longer ask" : "a client that asks you about writes would no longer ask";
  return `Approved as it is, it would be called as ${articles[is]}, and ${asked}.`;
}

const heldAs: Record<Lane, Pick<Said, "kind" | "icon">> = { read: { kind: "calm", icon: "read" }, write: { kind: "warm", icon: "write" }, destructive: { kind: "hot", icon: "destr" } };

/** Returns what heads a call that a person is asked about: what it counts as and why, or what was answered. */
export function heldWords(c: PendingCall): Said {
  const by = byWords(c.answered_by, c.answered_via) || "a lease";
  switch (c.state) {
    case "waiting": return { ...heldAs[c.lane], strong: `It counts as ${articles[c.lane]}:`, text: `${c.lane_reason}.` };
    case "approved": return { kind: "calm", icon: "shield-ok", strong: `Allowed by ${by}.`, text: "It was not made yet: that is for its client to do, within a quarter of an hour." };
    case "used": return { kind: "calm", icon: "shield-ok", strong: `Allowed by ${by}.`, text: "The call was made." };
    case "denied": return { kind: "calm", icon: "block", strong: `Denied by ${by}.`, text: c.denial ? `The agent was told: ${c.denial}` : "No reason was given." };
    case "expired": return { kind: "calm", icon: "clock", strong: "Its time is over.", text: `${c.answered_at ? "What was answered holds no longer. " : ""}When the call is made again, it is asked about again.` };
  }
}

/** Returns "2 block, 4 review" of findings; "none" of none. */
export function severities(findings: readonly Finding[]): string {
  const parts = (["block", "review", "note"] as const).map((s) => [findings.filter((f) => f.severity === s).length, s] as const).filter(([n]) => n > 0);
  return parts.map(([n, s]) => `${n} ${s}`).join(", ") || "none";
}

/** Returns since when: "since 14:02" of the last day, else "since 8 Nov". */
export function since(at: string, now: Date): string {
  const t = new Date(at);
  return "since " + (now.getTime() - t.getTime() < 86_400_000 ? clock(t) : date(t, now));
}

/** Returns by whom something was accepted: "by you", "by trust: scan". */
export function accepter(by: string): string {
  return by === "admin" ? "by you" : by.startsWith("trust:") ? `by trust: ${by.slice(6)}` : `by ${by}`;
}

/** Returns a fingerprint with its middle left out; the ends are what people compare. */
export function short(fingerprint: string): string {
  return fingerprint.length > 28 ? `${fingerprint.slice(0, 16)}…${fingerprint.slice(-9)}` : fingerprint;
}

/** Returns the sentence that heads the page. */
export function heading(n: number): string {
  return n === 0 ? "Nothing waits for you" : n === 1 ? "One waits for you" : `${number(n)} wait for you`;
}

/** Returns the line below it: what becomes of calls, and of the other things, until then. */
export function lead(calls: number, all: number): string {
  if (all === 0) return "What changes, and what an agent proposes, appears here first.";
  if (calls === 0) return `${all === 1 ? "It reaches no agent" : "None of them reaches an agent"} until you decide.`;
  if (calls === all) return `${all === 1 ? "It is not" : "None of them is"} made until you allow it.`;
  return `${count(calls, "call")} ${calls === 1 ? "is" : "are"} held until you answer; nothing else reaches an agent until you decide.`;
}

/** Says what did not change: "The 7 other parameters, name and title are as accepted." Empty when nothing is accepted. */
export function untouched(d: Diff): string {
  if (!d.approved?.definition) return "";
  const all = parameters(d.definition, d.approved.definition, d.changes);
  const rest = all.filter((p) => p.change === "same").length;
  const changed = (path: string) => d.changes.some((c) => c.path === path);
  const parts: string[] = [];
  const some = rest > 0 && rest < all.length;
  if (some) parts.push(`the ${rest === 1 ? "other parameter" : `${rest} other parameters`}`);
  for (const name of ["name", "title", "description"]) if (object(d.definition)[name] !== undefined && !changed("/" + name)) parts.push(name);
  if (rest > 0 && !some) parts.push(count(rest, "parameter"));
  if (parts.length === 0) return "";
  const text = parts.length === 1 ? parts[0]! : parts.slice(0, -1).join(", ") + " and " + parts.at(-1);
  const one = parts.length === 1 && !(rest > 1 && parts[0]!.includes("parameter"));
  return `${text.charAt(0).toUpperCase()}${text.slice(1)} ${one ? "is" : "are"} as accepted.`;
}
