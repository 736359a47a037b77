// The words for which a tool was found, in its texts; and its signature in parts.

import { own } from "../../lib/own";

export interface Part { text: string; mark: boolean }

/** Returns text in parts, with the words that are among found marked: whole words, in whatever case. */
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

/** Returns the words that reasons name, in lower case. */
export function foundWords(why: readonly { found: readonly string[] }[] = []): Set<string> {
  return new Set(why.flatMap((w) => w.found.map((f) => f.toLowerCase())));
}

/** Returns the first line of a description, at most 240 characters of it. */
export function summary(description: string): string {
  const line = description.trim().split("\n", 1)[0]!;
  return line.length > 240 ? line.slice(0, 240).trimEnd() + "…" : line;
}

/** Returns a signature in parts; the names of parameters that are required are marked. */
export function signatureParts(signature: string): Part[] {
  const parts: Part[] = [];
  let depth = 0;
  let quoted = false;
  let begin = 0; // of what is not in parts yet
  let name = -1; // where a name at the first depth begins
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

const hows: Record<string, string> = { same: "the very word", stem: "another form of it", joined: "joined to one word", synonym: "another word for it", misspelt: "misspelt", named: "its name", used: "called after such searches" };
const places: Record<string, string> = { parameter: "parameters", parameter_text: "texts of parameters" };

/** Returns how a word was found, and where: "another word for it, in name, summary". */
export function how(w: { how: string; fields: readonly string[] }): string {
  const where = w.fields.map((f) => own(places, f) ?? f).join(", ");
  return (own(hows, w.how) ?? w.how) + (where && w.how !== "used" ? `, in ${where}` : "");
}
