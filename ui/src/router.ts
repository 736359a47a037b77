// The URL is the state: /ui/<page>/<rest>?<parameters>. Each change is a history entry
// that Back undoes, unless it replaces the current one.

import { computed, signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import * as query from "./lib/query";
import { root } from "./root";

export const pageNames = ["overview", "approvals", "activity", "tools", "servers", "clients", "settings"] as const;
export type PageName = (typeof pageNames)[number];

export interface Place { page: PageName | ""; rest: string; search: string }

/** The current location. rest is the decoded part after the name of the page, for example a server. */
export const place = signal<Place>(parse(location));
export const search = computed(() => place.value.search);

export function parse(at: { pathname: string; search: string }): Place {
  const path = at.pathname.startsWith(root) ? at.pathname.slice(root.length) : "";
  const [first = "", ...rest] = path.split("/");
  const page = first === "" ? "overview" : (pageNames as readonly string[]).includes(first) ? (first as PageName) : "";
  return { page, rest: decode(rest.join("/")), search: at.search };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Returns the address of a page: href("activity", {status: "blocked"}). Empty parameters are left out. */
export function href(page: PageName, params: Record<string, string | undefined> = {}, rest = ""): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v) q.set(k, v);
  return root + page + (rest ? "/" + encodeURIComponent(rest) : "") + query.stringify(q);
}

/** Navigates to an address under /ui/. With replace there is no new history entry. */
export function go(to: string, options: { replace?: boolean } = {}): void {
  const url = new URL(to, location.href);
  const before = place.peek();
  history[options.replace ? "replaceState" : "pushState"](null, "", url.pathname + url.search);
  place.value = parse(url);
  if (before.page !== place.value.page || before.rest !== place.value.rest) arrive();
}

// A new page is scrolled to its top, and its content gets the focus for screen readers.
function arrive(): void {
  requestAnimationFrame(() => {
    const main = document.getElementById("main");
    main?.scrollTo(0, 0);
    main?.focus({ preventScroll: true });
  });
}

/**
 * Returns the parameters of the URL that schema names, and a function that sets some
 * of them: [q, setQ]. setQ({lane: ["write"]}) adds a history entry, setQ(…, {replace: true}) does not.
 */
export function useQuery<S extends query.Schema>(schema: S): [query.Values<S>, (patch: Partial<query.Values<S>>, options?: { replace?: boolean }) => void] {
  const now = search.value;
  const values = useMemo(() => query.read(schema, now), [now, schema]);
  return [values, (patch, options) => go(location.pathname + query.write(schema, place.peek().search, patch), options)];
}

addEventListener("popstate", () => (place.value = parse(location)));

// Links within the UI change the URL without a page load. The browser handles clicks with a modifier.
addEventListener("click", (e) => {
  const link = (e.target as Element | null)?.closest?.("a");
  if (!link || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  if (link.target || link.hasAttribute("download") || link.origin !== location.origin || !link.pathname.startsWith(root)) return;
  if (link.hash && link.pathname === location.pathname && link.search === location.search) return;
  e.preventDefault();
  go(link.pathname + link.search);
});
