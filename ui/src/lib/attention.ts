// The title of the tab while the page is hidden. Pure.

/** Returns the title of the tab: "(3) Approvals · MCPProxy"; waiting is how many things wait for the user. */
export function tabTitle(page: string, waiting: number): string {
  return `${waiting > 0 ? `(${waiting > 99 ? "99+" : waiting}) ` : ""}${page} · MCPProxy`;
}

/** Returns the file of the tab's icon, which has a dot while items are pending. */
export function tabIcon(waiting: number): string {
  return waiting > 0 ? "icon-waits.svg" : "icon.svg";
}
