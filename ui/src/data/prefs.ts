// The preferences stored in this browser. None is secret.

import { effect, signal, type Signal } from "@preact/signals";

/** Returns a signal that is kept in localStorage under name. */
export function kept<T extends string | boolean>(name: string, fallback: T): Signal<T> {
  const place = "mcpproxy." + name;
  const value = signal<T>(read(place, fallback));
  addEventListener("storage", (e) => e.key === place && (value.value = read(place, fallback))); // another tab changed it
  effect(() => {
    try {
      localStorage.setItem(place, String(value.value));
    } catch {
      // Storage is not available: the value lasts until the page is closed.
    }
  });
  return value;
}

function read<T extends string | boolean>(place: string, fallback: T): T {
  try {
    const text = localStorage.getItem(place);
    if (text === null) return fallback;
    return (typeof fallback === "boolean" ? text === "true" : text) as T;
  } catch {
    return fallback;
  }
}

/** The theme: the system's, or one of the two. public/theme.js reads it before the first paint. */
export const theme = kept<"system" | "light" | "dark">("theme", "system");

/** Whether this browser notifies the user; the browser asks for permission when Settings switches it on. */
export const notices = kept<boolean>("notices", false);

/** Whether single keys act; Settings can switch them off. */
export const singleKeys = kept<boolean>("keys", true);
