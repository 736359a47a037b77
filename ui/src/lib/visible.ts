// Shows invisible characters, and those that reorder text, as boxes with their code point.

const names: Record<number, string> = {
  0x00ad: "Soft hyphen", 0x061c: "Arabic letter mark", 0x200b: "Zero width space", 0x200c: "Zero width non-joiner",
  0x200d: "Zero width joiner", 0x200e: "Left-to-right mark", 0x200f: "Right-to-left mark", 0x202a: "Left-to-right embedding",
  0x202b: "Right-to-left embedding", 0x202c: "End of direction", 0x202d: "Left-to-right override", 0x202e: "Right-to-left override",
  0x2028: "Line separator", 0x2029: "Paragraph separator", 0x2060: "Word joiner", 0x2066: "Left-to-right isolate", 0x2067: "Right-to-left isolate",
  0x2068: "First strong isolate", 0x2069: "End of isolate", 0x3164: "Hangul filler", 0xfeff: "Byte order mark",
};

// Control characters except tab and line feed, format characters, line separators, private use, surrogates,
// variation selectors, fillers, and unusual spaces.
const hidden = /[^\P{C}\t\n]|[\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0\u034f\u17b4\u17b5\ufe00-\ufe0f\u{e0100}-\u{e01ef}]|(?! )\p{Zs}/gu;

/** A piece of a text, or one invisible character. */
export type Piece = { text: string } | { code: string; name: string };

/** Splits text into visible pieces and invisible characters. */
export function visible(text: string): Piece[] {
  const out: Piece[] = [];
  let at = 0;
  for (const match of text.matchAll(hidden)) {
    if (match.index > at) out.push({ text: text.slice(at, match.index) });
    out.push(box(match[0].codePointAt(0)!));
    at = match.index + match[0].length;
  }
  if (at < text.length) out.push({ text: text.slice(at) });
  return out;
}

function box(point: number): Piece {
  const code = "U+" + point.toString(16).toUpperCase().padStart(4, "0");
  const tag = point >= 0xe0020 && point <= 0xe007e ? `Tag ${String.fromCharCode(point - 0xe0000)}` : "";
  return { code, name: `${names[point] ?? (tag || "Character")}, invisible` };
}
