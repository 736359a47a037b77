// The title and the icon of the tab. Pure.

/** Returns the title of the tab: "(3) Approvals · MCPProxy"; waiting is the number of items that need review. */
export function tabTitle(page: string, waiting: number): string {
  return `${waiting > 0 ? `(${waiting > 99 ? "99+" : waiting}) ` : ""}${page} · MCPProxy`;
}

/** Returns the file of the tab's icon, which has a dot while items are pending. */
export function tabIcon(waiting: number): string {
  return waiting > 0 ? "icon-waits.svg" : "icon.svg";
}
