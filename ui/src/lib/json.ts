// Splits JSON into lines of tokens, so that the viewer renders it without HTML strings.

export type Token = { kind: "key" | "mark" | "text" | "masked"; text: string };
export type Line = Token[];

// The placeholder that the daemon writes for a secret in records and in the configuration.
const mask = /\[masked [a-z0-9-]{1,32} [0-9a-f]{8}\]|\*\*\*masked:\d+\*\*\*/g;

/** Returns text cut at masked values; a box shows the kind of the secret. */
export function masks(text: string, kind: Token["kind"] = "text"): Token[] {
  const out: Token[] = [];
  let at = 0;
  for (const match of text.matchAll(mask)) {
    if (match.index > at) out.push({ kind, text: text.slice(at, match.index) });
    out.push({ kind: "masked", text: match[0].startsWith("[") ? match[0].slice(1, -1) : "masked" });
    at = match.index + match[0].length;
  }
  if (at < text.length) out.push({ kind, text: text.slice(at) });
  return out;
}

/** Returns the lines of a value; values that fit into width characters are on one line. */
export function lines(value: unknown, width = 50): Line[] {
  const out: Line[] = [[]];
  const put = (token: Token) => out[out.length - 1]!.push(token);
  const mark = (text: string) => put({ kind: "mark", text });
  const flat = (v: unknown) => {
    const text = JSON.stringify(v) ?? "null";
    return typeof v !== "object" || v === null || text.length <= width ? text : undefined;
  };
  const inline = (v: unknown): void => {
    if (Array.isArray(v)) {
      mark("[");
      v.forEach((x, i) => (i && mark(", "), inline(x)));
      mark("]");
    } else if (v && typeof v === "object") {
      mark("{");
      Object.entries(v).forEach(([k, x], i) => (i && mark(", "), put({ kind: "key", text: JSON.stringify(k) }), mark(": "), inline(x)));
      mark("}");
    } else if (typeof v === "string" && masks(v).every((t) => t.kind === "masked")) masks(v.length ? v : '""').forEach(put);
    else masks(JSON.stringify(v) ?? "null").forEach(put);
  };
  const walk = (v: unknown, depth: number): void => {
    if (flat(v) !== undefined) return inline(v);
    const pad = "  ".repeat(depth + 1);
    const array = Array.isArray(v);
    const entries = Object.entries(v as object);
    mark(array ? "[" : "{");
    entries.forEach(([k, x], i) => {
      out.push([{ kind: "mark", text: pad }]);
      if (!array) {
        put({ kind: "key", text: JSON.stringify(k) });
        mark(": ");
      }
      walk(x, depth + 1);
      if (i < entries.length - 1) mark(",");
    });
    out.push([{ kind: "mark", text: "  ".repeat(depth) + (array ? "]" : "}") }]);
  };
  walk(value, 0);
  return out;
}
