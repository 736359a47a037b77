// Converts offsets: findings count UTF-8 bytes, JavaScript strings count UTF-16 units.

/** Returns the UTF-16 indices of ascending byte offsets of text; an offset inside a character becomes its start. */
export function utf16(text: string, offsets: readonly number[]): number[] {
  const out: number[] = [];
  let at = 0;
  let byte = 0;
  for (const offset of offsets) {
    while (at < text.length) {
      const point = text.codePointAt(at)!;
      const size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
      if (byte + size > offset) break;
      byte += size;
      at += point > 0xffff ? 2 : 1;
    }
    out.push(at);
  }
  return out;
}

/** A part of a text with a note. start and end are UTF-16 indices. */
export interface Span<T> { start: number; end: number; data: T }

/** Converts spans that count bytes into spans that count UTF-16 units. */
export function fromBytes<T>(text: string, spans: readonly Span<T>[]): Span<T>[] {
  const all = [...new Set(spans.flatMap((s) => [s.start, s.end]))].sort((a, b) => a - b);
  const found = utf16(text, all);
  const index = new Map(all.map((offset, i) => [offset, found[i]!]));
  return spans.map((s) => ({ start: index.get(s.start)!, end: index.get(s.end)!, data: s.data }));
}

/** A text split into plain and marked parts. first: the mark begins here. */
export type Node<T> = { text: string } | { mark: T; first: boolean; nodes: Node<T>[] };

/**
 * Returns text as a tree of marks. Overlapping spans are nested: a span that
 * ends inside another one is cut there, and continues with first = false.
 */
export function nest<T>(text: string, spans: readonly Span<T>[]): Node<T>[] {
  const clean = spans
    .map((s) => ({ ...s, start: Math.max(0, s.start), end: Math.min(text.length, s.end) }))
    .filter((s) => s.start < s.end)
    .sort((a, b) => a.start - b.start || b.end - a.end);
  return level(text, 0, text.length, clean, new Set());
}

function level<T>(text: string, from: number, to: number, spans: Span<T>[], begun: Set<T>): Node<T>[] {
  const out: Node<T>[] = [];
  let at = from;
  let queue = spans;
  while (queue.length > 0) {
    const [outer, ...rest] = queue as [Span<T>, ...Span<T>[]];
    if (outer.start > at) out.push({ text: text.slice(at, outer.start) });
    const inside: Span<T>[] = [];
    const after: Span<T>[] = [];
    for (const s of rest) {
      if (s.start < outer.end) inside.push({ ...s, end: Math.min(s.end, outer.end) });
      if (s.end > outer.end) after.push({ ...s, start: Math.max(s.start, outer.end) });
    }
    const first = !begun.has(outer.data);
    begun.add(outer.data);
    out.push({ mark: outer.data, first, nodes: level(text, outer.start, outer.end, inside, begun) });
    at = outer.end;
    queue = after.sort((a, b) => a.start - b.start || b.end - a.end);
  }
  if (at < to) out.push({ text: text.slice(at, to) });
  return out;
}

/** Returns the spans that lie in [from, to), moved so that from is 0; data stays the same object. */
export function within<T>(spans: readonly Span<T>[], from: number, to: number): Span<T>[] {
  return spans
    .filter((s) => s.start < to && s.end > from)
    .map((s) => ({ start: Math.max(s.start, from) - from, end: Math.min(s.end, to) - from, data: s.data }));
}
