// The texts of the kill switch. Pure.

import type { Pause } from "../api/types";

/** Returns why calls are rejected. */
export function pauseText(p: Pause): string {
  if (p.unknown) return `MCPProxy rejects every call, because it cannot read whether calls are paused: ${p.unknown}`;
  const since = p.at ? ` since ${new Date(p.at).toLocaleString()}` : "";
  return `All calls are paused${p.by ? ` by ${p.by}` : ""}${since}.${p.reason ? ` Reason: ${p.reason}` : ""}`;
}

/** Tells how many calls a pause has cancelled. */
export function stopped(cancelled: number, running: number): string {
  const n = cancelled === 1 ? "1 held or running call was cancelled." : `${cancelled || "No"} held or running calls were cancelled.`;
  return `Calls are paused. ${n}${running ? ` ${running} did not end yet.` : ""}`;
}
