// Reads GET /events with fetch, because EventSource sends no headers. A browser allows a
// host six connections for all tabs together. So one tab, which holds a lock, reads and
// forwards to the others. When it is closed, another tab continues after the last event.
// Events are delivered once per animation frame, so that 200 per second cause one rendering
// every 16 ms. A hidden page renders no frames: queued events beyond a limit become one
// "reset", which means: reload everything.

import { effect, signal } from "@preact/signals";
import type { StreamEvent } from "../lib/sse";
import type { EventRecord } from "./types";
import { ProblemError } from "./client";
import { answered, nextTry, offline, unanswered } from "./connection";
import { signedIn } from "./session";
import { stream } from "./stream";

export type LiveEvent =
  | { name: "activity"; kind: string; record: EventRecord }
  | { name: "server"; server: string; state?: string }
  | { name: "tool"; server: string }
  | { name: "config"; keys: string[]; error?: string }
  | { name: "pending" }
  | { name: "pause" }
  | { name: "reset" };

type Listener = (batch: LiveEvent[]) => void;

/** "none": this daemon has no events, so pages poll every few seconds. */
export const live = signal<"connecting" | "live" | "none">("connecting");

const listeners = new Set<Listener>();
const readers = new Set<(event: LiveEvent) => void>();
const maxQueue = 2000;
let queue: LiveEvent[] = [];
let frame = 0;
let running: AbortController | undefined;
let wake: (() => void) | undefined;
let last = "";

// The messages between the tab that reads the stream and the other tabs.
type Told =
  | { id?: string; event?: LiveEvent }
  | { live: typeof live.value; offline: boolean; nextTry?: Date }
  | { ask: "state" | "try" };

const place = "mcpproxy.events";
const tabs = typeof BroadcastChannel === "undefined" ? undefined : new BroadcastChannel(place);
let reads = false; // whether this tab reads the stream
const tell = (message: Told) => tabs?.postMessage(message);

/** Calls listener with each batch of events until the returned function is called. */
export function onEvents(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/**
 * Calls listener at once with each event, also while the page is hidden, until the returned function is called. Only
 * one tab of the browser gets events in this way.
 */
export function onRead(listener: (event: LiveEvent) => void): () => void {
  readers.add(listener);
  return () => readers.delete(listener);
}

/** Starts reading; does nothing if it was started before. */
export function startEvents(): void {
  if (running) return;
  running = new AbortController();
  const { signal } = running;
  if (!tabs || !navigator.locks) return void loop(signal);
  tell({ ask: "state" });
  navigator.locks.request(place, { signal }, () => loop(signal)).catch(() => {}); // signed out before its turn
}

export function stopEvents(): void {
  running?.abort();
  running = undefined;
  live.value = "connecting";
}

/** Retries immediately: the button of the offline banner. */
export function tryNow(): void {
  if (reads) wake?.();
  else tell({ ask: "try" });
}

function tellState(): void {
  tell({ live: live.value, offline: offline.value, ...(nextTry.value ? { nextTry: nextTry.value } : {}) });
}

tabs?.addEventListener("message", ({ data }: MessageEvent<Told>) => {
  if ("ask" in data) {
    if (!reads) return;
    if (data.ask === "try") wake?.();
    else tell({ id: last });
    return tellState();
  }
  if (reads || !running) return;
  if ("live" in data) {
    live.value = data.live;
    nextTry.value = data.nextTry;
    if (data.offline) unanswered();
    else if (offline.value) answered();
    return;
  }
  if (data.id) last = data.id;
  if (data.event) put(data.event);
});

async function loop(signal: AbortSignal): Promise<void> {
  reads = true;
  const stop = effect(tellState);
  try {
    await readOn(signal);
  } finally {
    stop();
    reads = false;
  }
}

async function readOn(signal: AbortSignal): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      await read(signal, failures > 0);
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ProblemError && error.status === 401) return stopEvents();
      if (error instanceof ProblemError && error.status === 404) live.value = "none";
      failures++;
    }
    if (live.value === "live") live.value = "connecting";
    const backoff = Math.min(15_000, 500 * 2 ** Math.min(failures, 5)) * (0.75 + Math.random() / 2);
    await pause(live.value === "none" ? 5000 : backoff, signal);
    if (live.value === "none") publish({ name: "reset" });
  }
}

// Reads one connection to its end; throws if it cannot be opened, or breaks. After a regular end,
// the stream resumes from its last id; after a failure, everything shown is reloaded.
function read(signal: AbortSignal, failed: boolean): Promise<void> {
  const onOpen = () => {
    live.value = "live";
    nextTry.value = undefined;
    if (failed) publish({ name: "reset" });
  };
  const onEvent = (e: StreamEvent) => {
    if (e.id) last = e.id;
    publish(decode(e.event, e.data), e.id);
  };
  return stream("/events", onEvent, { signal, lastId: last, onOpen });
}

function decode(name: string, data: string): LiveEvent | undefined {
  try {
    if (name === "reset") return { name: "reset" };
    const body = JSON.parse(data);
    if (name.startsWith("activity.")) return { name: "activity", kind: name.slice("activity.".length), record: body };
    if (name === "server.changed") return { name: "server", ...body };
    if (name === "tool.changed") return { name: "tool", ...body };
    if (name === "pending.changed") return { name: "pending" };
    if (name === "pause.changed") return { name: "pause" };
    if (name === "config.changed") return { name: "config", keys: body.keys ?? [], error: body.error };
  } catch {
    return { name: "reset" }; // the unreadable event may have been important
  }
  return undefined; // an event of a newer daemon
}

// Delivers to this tab and to the others.
function publish(event: LiveEvent | undefined, id?: string): void {
  tell({ ...(id ? { id } : {}), ...(event ? { event } : {}) });
  if (!event) return;
  put(event);
  for (const reader of readers) reader(event);
}

function put(event: LiveEvent): void {
  if (queue.length >= maxQueue || event.name === "reset") queue = [{ name: "reset" }];
  else queue.push(event);
  frame ||= requestAnimationFrame(flush);
}

function flush(): void {
  frame = 0;
  const batch = queue;
  queue = [];
  for (const listener of listeners) listener(batch);
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  nextTry.value = new Date(Date.now() + ms);
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      wake = undefined;
      resolve();
    };
    const timer = setTimeout(done, ms);
    wake = done;
    signal.addEventListener("abort", done, { once: true });
  });
}

// A request that failed here may have succeeded for the tab that reads.
offline.subscribe((o) => void (o && running && !reads && setTimeout(tryNow, 1000)));
// An offline page retries immediately when the user returns to it, or when the network is back.
addEventListener("online", tryNow);
addEventListener("visibilitychange", () => document.visibilityState === "visible" && offline.value && tryNow());
signedIn.subscribe((s) => (s ? startEvents() : stopEvents()));
