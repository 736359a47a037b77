// The pages: titles, icons, keys and loaders.

import type { FunctionComponent } from "preact";
import type { PageName } from "../router";
import type { IconName } from "../ui/icon";

export interface PageInfo {
  name: PageName;
  title: string;
  icon: IconName;
  /** Pressed after g. */
  key: string;
  /** Under "More" on phones. */
  later?: boolean;
  load: () => Promise<{ default: FunctionComponent }>;
}

/** The groups of the sidebar. */
export const groups: readonly (readonly PageInfo[])[] = [
  [
    { name: "overview", title: "Overview", icon: "overview", key: "o", load: () => import("../pages/overview/index") },
    { name: "approvals", title: "Approvals", icon: "inbox", key: "p", load: () => import("../pages/approvals/index") },
    { name: "activity", title: "Activity", icon: "activity", key: "a", load: () => import("../pages/activity/index") },
  ],
  [
    { name: "tools", title: "Tools", icon: "tools", key: "t", load: () => import("../pages/tools/index") },
    { name: "servers", title: "Servers", icon: "servers", key: "s", load: () => import("../pages/servers/index") },
    { name: "clients", title: "Clients", icon: "clients", key: "c", later: true, load: () => import("../pages/clients/index") },
  ],
  [{ name: "settings", title: "Settings", icon: "settings", key: ",", later: true, load: () => import("../pages/settings/index") }],
];

export const pages = groups.flat();

/** Returns the info of a page. */
export function pageOf(name: PageName | ""): PageInfo | undefined {
  return pages.find((p) => p.name === name);
}
