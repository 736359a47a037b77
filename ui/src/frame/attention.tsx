import { useEffect } from "preact/hooks";
import { useApprovals, usePending, waitingCount } from "../data/shared";
import { tabIcon, tabTitle } from "../lib/attention";
import { place } from "../router";
import { pageOf } from "./pages";

/** Shows the number of pending items in the title and the icon of the tab. */
export function Attention() {
  const waiting = waitingCount(useApprovals().data, usePending().data);
  const title = tabTitle(pageOf(place.value.page)?.title ?? "Not found", waiting);
  const icon = import.meta.env.BASE_URL + tabIcon(waiting);
  useEffect(() => void (document.title = title), [title]);
  useEffect(() => document.querySelector('link[rel="icon"]')?.setAttribute("href", icon), [icon]);
  return null;
}
