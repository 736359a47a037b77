// The arithmetic of tables that render only the rows in view.

/** The rows to render, first to last (exclusive), and the heights of the rows before and after, in px. */
export interface Drawn { first: number; last: number; before: number; after: number }

/** The extra height of some rows in px, by index. */
export type Extras = ReadonlyMap<number, number>;

/** Returns the top of row i in px. */
export function offset(i: number, height: number, extras?: Extras): number {
  let at = i * height;
  extras?.forEach((px, row) => row < i && (at += px));
  return at;
}

// Returns the row at an offset in px.
function rowAt(y: number, height: number, extras?: Extras): number {
  let before = 0;
  for (const [row, px] of [...(extras ?? [])].sort((a, b) => a[0] - b[0])) {
    if (offset(row + 1, height) + before > y) break;
    if (offset(row + 1, height) + before + px > y) return row;
    before += px;
  }
  return Math.floor((y - before) / height);
}

// Browsers limit the height of an element: Firefox to 17.9 million px, Chromium to 33.5 million. A million rows are higher.
const highest = 15_000_000;

// The px of rows per px of scrolling: 1 unless the rows exceed the maximum height of an element.
function scale(total: number, height: number, view: number, extras?: Extras): number {
  const all = offset(total, height, extras);
  return all <= highest ? 1 : (all - view) / (highest - view);
}

/** Returns the rows to render of total rows of one height, with margin rows beyond each edge of the view. If all rows are higher than an element can be, they scroll faster. */
export function drawn(total: number, height: number, top: number, view: number, margin = 12, extras?: Extras): Drawn {
  if (total <= 0 || height <= 0) return { first: 0, last: 0, before: 0, after: 0 };
  const by = scale(total, height, view, extras);
  const at = top * by;
  const first = clamp(rowAt(at, height, extras) - margin, 0, total - 1);
  const last = clamp(rowAt(Math.ceil(at + view) - 1, height, extras) + 1 + margin, first + 1, total);
  const from = offset(first, height, extras);
  const to = offset(last, height, extras);
  if (by === 1) return { first, last, before: from, after: offset(total, height, extras) - to };
  const before = clamp(top - (at - from), 0, highest);
  return { first, last, before, after: Math.max(0, highest - before - (to - from)) };
}

/** Returns the scroll position at which row i of total is completely visible below the head; the current one if it is visible already. */
export function reveal(i: number, total: number, height: number, top: number, view: number, head: number, extras?: Extras): number {
  const by = scale(total, height, view, extras);
  const from = offset(i, height, extras);
  const at = top * by;
  if (from < at) return from / by;
  if (from + height > at + view - head) return (from + height - (view - head)) / by;
  return top;
}

/** Returns the offsets of the pages that contain rows first to last. */
export function pages(first: number, last: number, size: number): number[] {
  const out: number[] = [];
  for (let at = Math.floor(first / size) * size; at < last; at += size) out.push(at);
  return out;
}

export function clamp(n: number, low: number, high: number): number {
  return Math.min(Math.max(n, low), high);
}
