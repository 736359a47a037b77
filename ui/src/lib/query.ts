// The state of a view is in the URL. A codec reads and writes one parameter. Defaults are
// left out, so that links stay short.

export interface Codec<T> { read(text: string | null): T; write(value: T): string | null }
export type Schema = Record<string, Codec<any>>;
export type Values<S extends Schema> = { [K in keyof S]: S[K] extends Codec<infer T> ? T : never };

/** A text; empty if absent. */
export function text(fallback = ""): Codec<string> {
  return { read: (t) => t ?? fallback, write: (v) => (v === fallback ? null : v) };
}

/** One of the given words; any other value becomes the fallback. */
export function oneOf<T extends string>(words: readonly T[], fallback: T): Codec<T> {
  return { read: (t) => (words.includes(t as T) ? (t as T) : fallback), write: (v) => (v === fallback ? null : v) };
}

/** Comma-separated values, limited to words if given. A comma in a value is written as %2C. */
export function list<T extends string = string>(words?: readonly T[]): Codec<T[]> {
  return {
    read: (t) => {
      const all = (t ?? "").split(",").map((v) => v.replaceAll("%2C", ",").replaceAll("%25", "%")).filter(Boolean) as T[];
      return words ? all.filter((v) => words.includes(v)) : all;
    },
    write: (v) => (v.length ? v.map((x) => x.replaceAll("%", "%25").replaceAll(",", "%2C")).join(",") : null),
  };
}

/** A whole number of at least 0. */
export function natural(fallback = 0): Codec<number> {
  return { read: (t) => (t && /^\d{1,9}$/.test(t) ? Number(t) : fallback), write: (v) => (v === fallback ? null : String(v)) };
}

/** A flag: true if present. */
export function flag(): Codec<boolean> {
  return { read: (t) => t !== null && t !== "0", write: (v) => (v ? "1" : null) };
}

/** Reads the parameters of a schema. */
export function read<S extends Schema>(schema: S, search: string): Values<S> {
  const params = new URLSearchParams(search);
  return Object.fromEntries(Object.entries(schema).map(([key, codec]) => [key, codec.read(params.get(key))])) as Values<S>;
}

/** Returns search with the patched parameters; other parameters stay. The result is "" or begins with "?". */
export function write<S extends Schema>(schema: S, search: string, patch: Partial<Values<S>>): string {
  const params = new URLSearchParams(search);
  for (const [key, value] of Object.entries(patch)) {
    const out = value === undefined ? null : schema[key]!.write(value);
    if (out === null) params.delete(key);
    else params.set(key, out);
  }
  return stringify(params);
}

/** Writes parameters in readable form: commas and colons stay unescaped. */
export function stringify(params: URLSearchParams): string {
  const out = params.toString().replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%2F", "/");
  return out ? "?" + out : "";
}
