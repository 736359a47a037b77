// Signing in: a one-time code after the # of the address, or the key.

import type { Session } from "./types";
import { api } from "./client";
import { askOtherTabs, dropSession, keepDevKey, keepSession, signedIn } from "./session";

/** Removes the code from the address before other code can read it. */
export function takeCode(): string {
  const code = location.hash.slice(1);
  if (!code) return "";
  history.replaceState(history.state, "", location.pathname + location.search);
  return /^[A-Za-z0-9_-]{8,200}$/.test(code) ? code : "";
}

/** Signs in with the code or the current session; throws the error of a rejected code. */
export async function start(code: string): Promise<void> {
  if (code) return open({ code });
  await askOtherTabs();
  // The cookie alone is not enough: without the value of this tab the status is 401.
  await api.get(import.meta.env.DEV ? "/status" : "/session").then(
    () => void (signedIn.value = true),
    (error) => void (signedIn.value = error.name === "OfflineError"),
  );
}

/** Opens a session with a code or the key. */
export async function open(proof: { code: string } | { key: string }): Promise<void> {
  if (import.meta.env.DEV && "key" in proof) {
    keepDevKey(proof.key);
    await api.get("/status");
    signedIn.value = true;
    return;
  }
  try {
    const session = await api.post<Session>("/session", proof);
    keepSession(session.value);
  } catch (error) {
    signedIn.value = false;
    throw error;
  }
}

/** Ends the session of this browser or of all browsers. */
export async function signOut(everywhere = false): Promise<void> {
  await api.delete("/session", everywhere ? { query: { everywhere } } : {});
  dropSession();
}
