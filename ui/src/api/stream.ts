// Reads a text/event-stream with fetch, because EventSource sends no headers.

import { parser, type StreamEvent } from "../lib/sse";
import { send, type Params } from "./client";

/**
 * Reads a stream and calls onEvent for each event. It returns when the stream ends,
 * and throws if it cannot be opened or breaks. onOpen is called at the first response.
 */
export async function stream(route: string, onEvent: (e: StreamEvent) => void, o: { signal: AbortSignal; query?: Params; lastId?: string; onOpen?: () => void }): Promise<void> {
  const headers = { Accept: "text/event-stream", ...(o.lastId ? { "Last-Event-ID": o.lastId } : {}) };
  const response = await send("GET", route, { signal: o.signal, headers, ...(o.query ? { query: o.query } : {}) });
  o.onOpen?.();
  const parse = parser();
  const decoder = new TextDecoder();
  const reader = response.body!.getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    parse(decoder.decode(value, { stream: true })).forEach(onEvent);
  }
}
