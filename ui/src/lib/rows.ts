// The arithmetic of tables that draw only what is in view.

/** Rows to draw: first to last, last not included, and the heights that stand for those before and after. */
export interface Drawn { first: number; last: number; before: number; after: number }

/** Returns what to draw of total rows of one height, with margin rows beyond each edge of the view. */
export function drawn(total: number, height: number, top: number, view: number, margin = 12): Drawn {
  if (total <= 0 || height <= 0) return { first: 0, last: 0, before: 0, after: 0 };
  const first = clamp(Math.floor(top / height) - margin, 0, total - 1);
  const last = clamp(Math.ceil((top + view) / height) + margin, first + 1, total);
  return { first, last, before: first * height, after: (total - last) * height };
}

/** Returns the scroll position that shows row i whole, or the present one when it is in view below a head. */
export function reveal(i: number, height: number, top: number, view: number, head: number): number {
  const from = i * height;
  if (from < top) return from;
  if (from + height > top + view - head) return from + height - (view - head);
  return top;
}

/** Returns the offsets of the pages that hold rows first to last. */
export function pages(first: number, last: number, size: number): number[] {
  const out: number[] = [];
  for (let at = Math.floor(first / size) * size; at < last; at += size) out.push(at);
  return out;
}

export function clamp(n: number, low: number, high: number): number {
  return Math.min(Math.max(n, low), high);
}
