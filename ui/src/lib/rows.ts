// The arithmetic of tables that draw only what is in view.

/** Rows to draw: first to last, last not included, and the heights that stand for those before and after. */
export interface Drawn { first: number; last: number; before: number; after: number }

// Browsers do not make boxes as high as a million rows: Firefox ends at 17.9 million px, Chromium at 33.5.
const highest = 15_000_000;

// How many px of rows one px of scrolling stands for: 1 unless the rows are higher than a box can be.
function scale(total: number, height: number, view: number): number {
  const all = total * height;
  return all <= highest ? 1 : (all - view) / (highest - view);
}

/** Returns what to draw of total rows of one height, with margin rows beyond each edge of the view. Rows higher than a box can be are scrolled through faster. */
export function drawn(total: number, height: number, top: number, view: number, margin = 12): Drawn {
  if (total <= 0 || height <= 0) return { first: 0, last: 0, before: 0, after: 0 };
  const by = scale(total, height, view);
  const at = top * by;
  const first = clamp(Math.floor(at / height) - margin, 0, total - 1);
  const last = clamp(Math.ceil((at + view) / height) + margin, first + 1, total);
  if (by === 1) return { first, last, before: first * height, after: (total - last) * height };
  const before = clamp(top - (at - first * height), 0, highest);
  return { first, last, before, after: Math.max(0, highest - before - (last - first) * height) };
}

/** Returns the scroll position that shows row i of total whole, or the present one when it is in view below a head. */
export function reveal(i: number, total: number, height: number, top: number, view: number, head: number): number {
  const by = scale(total, height, view);
  const from = i * height;
  const at = top * by;
  if (from < at) return from / by;
  if (from + height > at + view - head) return (from + height - (view - head)) / by;
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
