// The session: an HttpOnly cookie that scripts cannot read, and a value, stored for this tab,
// that every request must also send. Neither is valid without the other.

import { signal } from "@preact/signals";

const place = "mcpproxy.session";
const devPlace = "mcpproxy.dev.key";

/** Whether the page is signed in. */
export const signedIn = signal(false);

const tabs = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel(place);
tabs?.addEventListener("message", (e: MessageEvent) => {
  const value = sessionStorage.getItem(place);
  if (e.data === "ask" && value) tabs.postMessage({ value });
});

/** The headers that prove the session. */
export function proof(): Record<string, string> {
  const headers: Record<string, string> = {};
  const value = sessionStorage.getItem(place);
  if (value) headers["X-MCPProxy-Session"] = value;
  if (import.meta.env.DEV) {
    const key = sessionStorage.getItem(devPlace);
    if (key) headers["X-API-Key"] = key;
  }
  return headers;
}

export function keepSession(value: string): void {
  sessionStorage.setItem(place, value);
  signedIn.value = true;
}

export function dropSession(): void {
  sessionStorage.removeItem(place);
  signedIn.value = false;
}

/** Keeps the key for development, where the dev server and not the daemon serves the page. */
export function keepDevKey(key: string): void {
  if (import.meta.env.DEV) sessionStorage.setItem(devPlace, key);
}

/**
 * Asks the other tabs of this page for the session, so that a link opened in a new tab
 * needs no second sign-in. Reports whether this tab then has one; waits at most 150 ms.
 */
export function askOtherTabs(): Promise<boolean> {
  if (sessionStorage.getItem(place) || !tabs) return Promise.resolve(!!sessionStorage.getItem(place));
  return new Promise((resolve) => {
    const done = (found: boolean) => {
      clearTimeout(timer);
      tabs.removeEventListener("message", hear);
      resolve(found);
    };
    const hear = (e: MessageEvent) => {
      if (typeof e.data?.value !== "string") return;
      sessionStorage.setItem(place, e.data.value);
      done(true);
    };
    const timer = setTimeout(done, 150, false);
    tabs.addEventListener("message", hear);
    tabs.postMessage("ask");
  });
}
