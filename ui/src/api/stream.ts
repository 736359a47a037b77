// A text/event-stream read by fetch, because EventSource sends no headers.

import { parser, type StreamEvent } from "../lib/sse";
import { send, type Params } from "./client";

/**
 * Reads a stream and calls onEvent for each event; it returns when the stream ends
 * and throws when there is none or when it breaks. onOpen is called once it answers.
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
