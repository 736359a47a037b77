// The line difference of two texts, as it is shown.

/** A line and its number: for a removed line the number in the old text, otherwise in the new text. */
export interface Line { kind: "same" | "added" | "removed"; no: number; text: string }
/** Unchanged lines that are not shown. */
export interface Gap { kind: "gap"; no: number; lines: Line[] }
/** What jsdiff's diffLines returns. */
export interface Part { value: string; added?: boolean; removed?: boolean }

/** Returns the lines of a difference, with a few unchanged lines around each change. */
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
    // A single line takes no more space than the note that it is not shown.
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
