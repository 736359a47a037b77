import type { SearchAnswer, Tool } from "../api/types";

/** Returns found tools in the order of the palette: those under review first, blocked ones last. */
export function ranked(a: Pick<SearchAnswer, "tools" | "locked">): Tool[] {
  const locked = a.locked ?? [];
  return [...locked.filter((t) => t.status !== "blocked").slice(0, 3), ...a.tools, ...locked.filter((t) => t.status === "blocked").slice(0, 1)];
}
