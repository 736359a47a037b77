// Data that several pages and the frame show: fetched once and refreshed by events.

import { signal, type ReadonlySignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { onEvents, type LiveEvent } from "../api/events";
import { api } from "../api/client";
import { signedIn } from "../api/session";
import type { Clients, PendingCall, Server, Status, Waiting } from "../api/types";
import type { Resource } from "./resource";
import { useSlow } from "./slow";

interface State<T> { data?: T; error?: unknown; at?: Date; loading: boolean }

export interface Shared<T> {
  state: ReadonlySignal<State<T>>;
  reload: () => void;
  set: (data: T) => void;
  /** Loads it unless it was requested before. */
  want: () => void;
}

// Events come in bursts: one fetch after each burst, and never two at a time.
const gather = 250;

function shared<T>(fetcher: () => Promise<T>, stale: (event: LiveEvent) => boolean): Shared<T> {
  const state = signal<State<T>>({ loading: false });
  let wanted = false;
  let busy = false;
  let again = false;
  let timer = 0;
  const run = async () => {
    timer = 0;
    if (busy) return void (again = true);
    busy = true;
    state.value = { ...state.peek(), loading: true };
    try {
      state.value = { data: await fetcher(), at: new Date(), loading: false };
    } catch (error) {
      state.value = { ...state.peek(), error, loading: false };
    }
    busy = false;
    if (again) {
      again = false;
      soon();
    }
  };
  const soon = () => void (timer ||= window.setTimeout(run, gather));
  onEvents((batch) => wanted && batch.some(stale) && soon());
  signedIn.subscribe((s) => s && wanted && void run());
  return {
    state,
    reload: () => void run(),
    set: (data) => (state.value = { ...state.peek(), data, at: new Date() }),
    want: () => {
      if (wanted) return;
      wanted = true;
      if (signedIn.peek()) void run();
    },
  };
}

function useShared<T>(s: Shared<T>): Resource<T> {
  const { data, error, at, loading } = s.state.value;
  const slow = useSlow(data === undefined && error === undefined);
  useEffect(s.want, []);
  return { data, error, at, loading, slow, reload: s.reload, set: s.set };
}

export const status = shared<Status>(
  () => api.get("/status"),
  (e) => e.name !== "activity" || e.kind === "recorded",
);
export const approvals = shared<Waiting>(
  () => api.get("/approvals"),
  (e) => e.name === "reset" || e.name === "tool" || e.name === "server" || (e.name === "activity" && e.record.type === "approval"),
);
// There is no event when a package cannot be downloaded.
let coming = 0;
export const servers = shared<Server[]>(
  async () => {
    const all = (await api.get<{ servers: Server[] }>("/servers")).servers;
    clearTimeout(coming);
    if (all.some((s) => s.state === "connecting")) coming = window.setTimeout(servers.reload, 3000);
    return all;
  },
  (e) => (e.name === "activity" ? e.record.type === "server_change" : e.name !== "pending" && e.name !== "pause"),
);

// There is no event when an unanswered call expires.
let over = 0;
export const pending = shared<PendingCall[]>(
  async () => {
    const all = (await api.get<{ pending: PendingCall[] }>("/pending")).pending;
    clearTimeout(over);
    if (all.length) over = window.setTimeout(pending.reload, Math.max(5000, Math.min(...all.map((c) => Date.parse(c.until))) - Date.now()));
    return all;
  },
  (e) => e.name === "reset" || e.name === "pending",
);

// Files of other programs change without an event: reload them when the user returns to the page.
export const clients = shared<Clients>(
  () => api.get("/clients"),
  (e) => e.name === "reset",
);

export const useStatus = () => useShared(status);
export const useApprovals = () => useShared(approvals);
export const useServers = () => useShared(servers);
/** The pending calls, the oldest first. */
export const usePending = () => useShared(pending);
export const useClients = () => {
  useEffect(() => {
    const again = () => document.visibilityState === "visible" && clients.reload();
    document.addEventListener("visibilitychange", again);
    return () => document.removeEventListener("visibilitychange", again);
  }, []);
  return useShared(clients);
};

/** Returns the number of items that need review: those of REST without blocked ones, and pending calls. */
export function waitingCount(w: Waiting | undefined, calls: readonly PendingCall[] = []): number {
  if (!w) return calls.length;
  return w.servers.length + w.total_tools + w.total_offers - w.total_blocked + calls.length;
}
