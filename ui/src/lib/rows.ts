// The arithmetic of tables that draw only what is in view.

/** Rows to draw: first to last, last not included, and the heights that stand for those before and after. */
export interface Drawn { first: number; last: number; before: number; after: number }

/** What some rows need beyond the common height, in px, by their index: a few of many. */
export type Extras = ReadonlyMap<number, number>;

/** Returns where row i begins. */
export function offset(i: number, height: number, extras?: Extras): number {
  let at = i * height;
  extras?.forEach((px, row) => row < i && (at += px));
  return at;
}

// The row at a height, or one just before it.
function rowAt(y: number, height: number, extras?: Extras): number {
  let before = 0;
  for (const [row, px] of [...(extras ?? [])].sort((a, b) => a[0] - b[0])) {
    if (offset(row + 1, height) + before > y) break;
    if (offset(row + 1, height) + before + px > y) return row;
    before += px;
  }
  return Math.floor((y - before) / height);
}

/** Returns what to draw of total rows of one height, with margin rows beyond each edge of the view. */
export function drawn(total: number, height: number, top: number, view: number, margin = 12, extras?: Extras): Drawn {
  if (total <= 0 || height <= 0) return { first: 0, last: 0, before: 0, after: 0 };
  const first = clamp(rowAt(top, height, extras) - margin, 0, total - 1);
  const last = clamp(rowAt(top + view - 1, height, extras) + 1 + margin, first + 1, total);
  return { first, last, before: offset(first, height, extras), after: offset(total, height, extras) - offset(last, height, extras) };
}

/** Returns the scroll position that shows row i whole, or the present one when it is in view below a head. */
export function reveal(i: number, height: number, top: number, view: number, head: number, extras?: Extras): number {
  const from = offset(i, height, extras);
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
