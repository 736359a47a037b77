// Marks the matching words in the texts of a tool, and splits its signature.

import { own } from "../../lib/own";

export interface Part { text: string; mark: boolean }

/** Splits text into parts and marks the words in found: whole words, ignoring case. */
export function marked(text: string, found: ReadonlySet<string>): Part[] {
  const parts: Part[] = [];
  const add = (t: string, mark: boolean) => {
    const last = parts.at(-1);
    if (last && last.mark === mark) last.text += t;
    else if (t) parts.push({ text: t, mark });
  };
  for (const piece of text.split(/([\p{L}\p{N}]+)/u)) add(piece, found.has(piece.toLowerCase()));
  return parts;
}

/** Returns the matching words of all reasons, in lower case. */
export function foundWords(why: readonly { found: readonly string[] }[] = []): Set<string> {
  return new Set(why.flatMap((w) => w.found.map((f) => f.toLowerCase())));
}

/** Returns the first line of a description, at most 240 characters of it. */
export function summary(description: string): string {
  const line = description.trim().split("\n", 1)[0]!;
  return line.length > 240 ? line.slice(0, 240).trimEnd() + "…" : line;
}

/** Splits a signature into parts and marks the names of required parameters. */
export function signatureParts(signature: string): Part[] {
  const parts: Part[] = [];
  let depth = 0;
  let quoted = false;
  let begin = 0; // start of the text that is not in parts yet
  let name = -1; // start of a name at the first depth
  for (let i = 0; i < signature.length; i++) {
    const c = signature[i]!;
    if (quoted) {
      if (c === "\\") i++;
      else if (c === '"') quoted = false;
    } else if (c === '"') quoted = true;
    else if ("({[<".includes(c)) {
      if (++depth === 1) name = i + 1;
    } else if (")}]>".includes(c)) depth--;
    else if (c === "," && depth === 1) name = i + 1;
    else if (c === ":" && depth === 1 && name >= 0) {
      const own = signature.slice(name, i);
      const at = name + (own.length - own.trimStart().length);
      if (!own.endsWith("?")) {
        parts.push({ text: signature.slice(begin, at), mark: false }, { text: signature.slice(at, i), mark: true });
        begin = i;
      }
      name = -1;
    }
  }
  parts.push({ text: signature.slice(begin), mark: false });
  return parts;
}

const hows: Record<string, string> = { same: "exact match", stem: "same stem", joined: "compound word", synonym: "synonym", misspelt: "spelling variant", named: "tool name", used: "called after similar searches" };
const places: Record<string, string> = { parameter: "parameters", parameter_text: "parameter descriptions" };

/** Returns how and where a word matched: "synonym, in name, summary". */
export function how(w: { how: string; fields: readonly string[] }): string {
  const where = w.fields.map((f) => own(places, f) ?? f).join(", ");
  return (own(hows, w.how) ?? w.how) + (where && w.how !== "used" ? `, in ${where}` : "");
}
