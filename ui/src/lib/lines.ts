// The difference of two texts by lines, as it is drawn.

/** A line with its number: the old one of a removed line, else the new one. */
export interface Line { kind: "same" | "added" | "removed"; no: number; text: string }
/** Lines that are the same and not shown. */
export interface Gap { kind: "gap"; no: number; lines: Line[] }
/** What jsdiff's diffLines returns. */
export interface Part { value: string; added?: boolean; removed?: boolean }

/** Returns the lines of a difference; of those that are the same, only context lines around a change are shown. */
export function lines(parts: readonly Part[], context = 3): (Line | Gap)[] {
  const all: Line[] = [];
  let was = 0;
  let is = 0;
  for (const p of parts) {
    for (const text of split(p.value)) {
      if (!p.added) was++;
      if (!p.removed) is++;
      all.push(p.added ? { kind: "added", no: is, text } : p.removed ? { kind: "removed", no: was, text } : { kind: "same", no: is, text });
    }
  }
  const near = new Uint8Array(all.length);
  all.forEach((l, i) => l.kind !== "same" && near.fill(1, Math.max(0, i - context), i + context + 1));
  const out: (Line | Gap)[] = [];
  for (let i = 0; i < all.length; ) {
    let end = i;
    while (end < all.length && !near[end]) end++;
    // One line takes no more room than the words that it is left out.
    if (end - i > 1) out.push({ kind: "gap", no: all[i]!.no, lines: all.slice(i, end) });
    else if (end === i) out.push(all[end++]!);
    else out.push(all[i]!);
    i = end;
  }
  return out;
}

function split(text: string): string[] {
  const all = text.split("\n");
  if (all.at(-1) === "") all.pop();
  return all.map((l) => l.replace(/\r$/, ""));
}

/** Returns how many lines were added and removed. */
export function tally(parts: readonly Part[]): { added: number; removed: number } {
  const n = (which: "added" | "removed") => parts.reduce((sum, p) => sum + (p[which] ? split(p.value).length : 0), 0);
  return { added: n("added"), removed: n("removed") };
}
