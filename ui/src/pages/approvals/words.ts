// The sentences of the page: the meaning of a verdict for the reviewer.

import type { Finding, Lane, PendingCall } from "../../api/types";
import { clock, count, date, number, spelled } from "../../lib/format";
import { byWords } from "../../lib/who";
import type { Diff } from "./decide";
import { object, parameters } from "./definition";

export interface Said { kind: "hot" | "warm" | "calm"; icon: "shield" | "shield-ok" | "destr" | "block" | "write" | "read" | "clock"; strong: string; text: string }

/** Returns the verdict at the top of the detail. was is the lane of the approved definition. */
export function verdict(d: Diff, was: Lane, is: Lane): Said {
  if (d.reason === "blocked") return { kind: "calm", icon: "block", strong: "You blocked this definition.", text: "Agents cannot use it until you unblock it." };
  if (!d.reason) return { kind: "calm", icon: "shield-ok", strong: "Nothing to review.", text: "The current definition is approved." };
  const n = d.findings.length;
  if (d.verdict === "block") {
    const grave = d.findings.filter((f) => f.severity === "block").length;
    const of = grave === n ? `${n === 1 ? "The finding is" : `All ${spelled(n).toLowerCase()} findings are`}` : `${spelled(grave)} of ${spelled(n).toLowerCase()} findings ${grave === 1 ? "is" : "are"}`;
    return { kind: "hot", icon: "shield", strong: "Likely attack.", text: `${of} typical of attacks. The text is marked below. No agent has seen it.` };
  }
  if (d.loosened?.length) return { kind: "warm", icon: "destr", strong: "Hints relaxed.", text: loosened(was, is) };
  if (d.verdict === "incomplete") return { kind: "warm", icon: "shield", strong: "The scanner could not read the whole definition.", text: "Read it before you decide." };
  if (n > 0 && d.verdict !== "clean") return { kind: "warm", icon: "shield", strong: `${n === 1 ? "1 finding" : `${n} findings`} to review.`, text: "Attacks and legitimate tools both use such text. Check the marked text below." };
  return { kind: "calm", icon: "shield-ok", strong: "No findings.", text: d.approved ? "Review the changes." : "Review the definition." };
}

function loosened(was: Lane, is: Lane): string {
  if (was === is) return `The tool stays in the ${is} lane, but declares fewer effects than before.`;
  const asked = was === "destructive" ? "clients that ask only before destructive calls no longer ask" : "clients that ask before writes no longer ask";
  return `If you approve it, the tool moves to the ${is} lane, and ${asked}.`;
}

const heldAs: Record<Lane, Pick<Said, "kind" | "icon">> = { read: { kind: "calm", icon: "read" }, write: { kind: "warm", icon: "write" }, destructive: { kind: "hot", icon: "destr" } };

/** Returns the verdict at the top of a held call: its lane and why, or the answer. */
export function heldWords(c: PendingCall): Said {
  const by = byWords(c.answered_by, c.answered_via) || "a lease";
  switch (c.state) {
    case "waiting": return { ...heldAs[c.lane], strong: `Lane: ${c.lane}.`, text: `Reason: ${c.lane_reason}.` };
    case "approved": return { kind: "calm", icon: "shield-ok", strong: `Approved by ${by}.`, text: "The client has not repeated the call yet. The approval expires after 15 minutes." };
    case "used": return { kind: "calm", icon: "shield-ok", strong: `Approved by ${by}.`, text: "The call was sent." };
    case "denied": return { kind: "calm", icon: "block", strong: `Denied by ${by}.`, text: c.denial ? `Reason sent to the agent: ${c.denial}` : "No reason given." };
    case "expired": return { kind: "calm", icon: "clock", strong: "Expired.", text: `${c.answered_at ? "The answer is no longer valid. " : ""}If the client repeats the call, you are asked again.` };
  }
}

/** Returns "2 block, 4 review" of findings; "none" of none. */
export function severities(findings: readonly Finding[]): string {
  const parts = (["block", "review", "note"] as const).map((s) => [findings.filter((f) => f.severity === s).length, s] as const).filter(([n]) => n > 0);
  return parts.map(([n, s]) => `${n} ${s}`).join(", ") || "none";
}

/** Returns "since 14:02" within the last day, else "since 8 Nov". */
export function since(at: string, now: Date): string {
  const t = new Date(at);
  return "since " + (now.getTime() - t.getTime() < 86_400_000 ? clock(t) : date(t, now));
}

/** Returns the approver: "by you", "by trust: scan". */
export function accepter(by: string): string {
  return by === "admin" ? "by you" : by.startsWith("trust:") ? `by trust: ${by.slice(6)}` : `by ${by}`;
}

/** Returns the start and the end of a fingerprint, which people compare. */
export function short(fingerprint: string): string {
  return fingerprint.length > 28 ? `${fingerprint.slice(0, 16)}…${fingerprint.slice(-9)}` : fingerprint;
}

/** Returns the heading of the page. */
export function heading(n: number): string {
  return n === 0 ? "Nothing to review" : n === 1 ? "1 item needs review" : `${number(n)} items need review`;
}

/** Returns the line below the heading: what happens to the items until they are decided. */
export function lead(calls: number, all: number): string {
  if (all === 0) return "Changed definitions and servers that agents propose appear here.";
  if (calls === 0) return `Agents cannot use ${all === 1 ? "it" : "them"} until you approve.`;
  if (calls === all) return `${all === 1 ? "The call is" : "Calls are"} held until you approve.`;
  return `${count(calls, "call")} ${calls === 1 ? "is" : "are"} held until you answer. Agents cannot use the other items until you approve.`;
}

/** Returns what did not change: "The 7 other parameters, name and title are unchanged." Empty if nothing is approved. */
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
  return `${text.charAt(0).toUpperCase()}${text.slice(1)} ${one ? "is" : "are"} unchanged.`;
}
