// A form for the arguments of a tool, from their schema. Every field holds text, which is
// converted to JSON when the tool is called. Other types are entered as JSON.

import { own, setOwn } from "../../lib/own";

export type Kind = "text" | "long" | "number" | "integer" | "boolean" | "enum" | "strings" | "json";
export interface FormField { name: string; kind: Kind; required: boolean; description: string; options: readonly unknown[]; example: string }
export type Entries = Record<string, string>;

type Schema = Record<string, unknown>;
const object = (v: unknown): v is Schema => typeof v === "object" && v !== null && !Array.isArray(v);
const maxFields = 200;

/** Returns the fields, required ones first; undefined if the schema needs JSON. */
export function fields(schema: unknown): FormField[] | undefined {
  if (schema === undefined) return [];
  if (!object(schema) || (schema.type !== undefined && schema.type !== "object") || ["oneOf", "anyOf", "allOf", "$ref", "if"].some((k) => k in schema)) return undefined;
  const properties = object(schema.properties) ? Object.entries(schema.properties) : [];
  const required = Array.isArray(schema.required) ? schema.required : [];
  // A required name without a property, an open schema, or too many fields.
  if (properties.length > maxFields || required.some((name) => !properties.some(([p]) => p === name))) return undefined;
  if (properties.length === 0 && schema.additionalProperties !== undefined && schema.additionalProperties !== false) return undefined;
  const all = properties.map(([name, s]) => field(name, s, required.includes(name)));
  return [...all.filter((f) => f.required), ...all.filter((f) => !f.required)];
}

const longNames = /(^|_)(body|content|contents|text|markdown|message|code|script|sql|prompt|html|patch|diff)$/i;

function field(name: string, given: unknown, required: boolean): FormField {
  const s = object(given) ? withoutNull(given) : {};
  const options = Array.isArray(s.enum) ? s.enum : "const" in s ? [s.const] : [];
  const show = s.default ?? (Array.isArray(s.examples) ? s.examples[0] : undefined);
  return {
    name, required, options, kind: options.length > 0 && options.length <= 200 ? "enum" : kindOf(name, s),
    description: typeof s.description === "string" ? s.description : "", example: show === undefined ? "" : typeof show === "string" ? show : JSON.stringify(show),
  };
}

// A nullable value is optional.
function withoutNull(s: Schema): Schema {
  const any = s.anyOf ?? s.oneOf;
  if (Array.isArray(any)) {
    const rest = any.filter((o) => !(object(o) && o.type === "null"));
    if (rest.length === 1 && object(rest[0])) return { ...rest[0], ...("description" in s ? { description: s.description } : {}), ...("default" in s && s.default !== null ? { default: s.default } : {}) };
  }
  if (Array.isArray(s.type)) {
    const types = s.type.filter((t) => t !== "null");
    return { ...s, type: types.length === 1 ? types[0] : types };
  }
  return s;
}

function kindOf(name: string, s: Schema): Kind {
  if (s.type === "number" || s.type === "integer" || s.type === "boolean") return s.type;
  if (s.type === "string") return longNames.test(name) || Number(s.maxLength) > 500 ? "long" : "text";
  if (s.type === "array" && object(s.items) && s.items.type === "string") return "strings";
  return "json";
}

/** Returns the arguments and the errors by field. Empty fields are left out. */
export function argumentsOf(all: readonly FormField[], entries: Entries): { args: Record<string, unknown>; mistakes: Record<string, string> } {
  const args: Record<string, unknown> = {};
  const mistakes: Record<string, string> = {};
  for (const f of all) {
    const text = own(entries, f.name) ?? "";
    if (text.trim() === "") {
      if (f.required) setOwn(mistakes, f.name, "This field is required.");
      continue;
    }
    const read = value(f, text);
    if ("mistake" in read) setOwn(mistakes, f.name, read.mistake);
    else setOwn(args, f.name, read.value);
  }
  return { args, mistakes };
}

function value(f: FormField, text: string): { value: unknown } | { mistake: string } {
  switch (f.kind) {
    case "number":
    case "integer": {
      const n = Number(text);
      if (!/^\s*-?\d+(\.\d+)?([eE][-+]?\d+)?\s*$/.test(text) || !Number.isFinite(n)) return { mistake: "Enter a number, such as 12." };
      if (f.kind === "integer" && !Number.isInteger(n)) return { mistake: "Enter a whole number, such as 12." };
      if (Number.isInteger(n) && !Number.isSafeInteger(n)) return { mistake: "The number is too large. Use JSON." };
      return { value: n };
    }
    case "boolean": return { value: text === "true" };
    case "enum": return { value: f.options[Number(text)] };
    case "strings": return { value: text.split("\n").map((l) => l.replace(/\r$/, "")).filter((l) => l !== "") };
    case "json": return json(text);
    default: return { value: text };
  }
}

/** Parses JSON; the error says where. */
export function json(text: string): { value: unknown } | { mistake: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (cause) {
    return { mistake: "Invalid JSON: " + (cause as Error).message };
  }
}

/** Returns the entries for these arguments; undefined if the form cannot hold all of them. */
export function entriesOf(all: readonly FormField[], args: unknown): Entries | undefined {
  if (!object(args)) return undefined;
  const entries: Entries = {};
  for (const [name, v] of Object.entries(args)) {
    const f = all.find((one) => one.name === name);
    if (!f) return undefined;
    const text = textOf(f, v);
    if (text === undefined) return undefined;
    setOwn(entries, name, text);
  }
  return JSON.stringify(argumentsOf(all.map((f) => ({ ...f, required: false })), entries).args) === JSON.stringify(sorted(all, args)) ? entries : undefined;
}

function textOf(f: FormField, v: unknown): string | undefined {
  switch (f.kind) {
    case "enum": {
      const i = f.options.findIndex((o) => JSON.stringify(o) === JSON.stringify(v));
      return i < 0 ? undefined : String(i);
    }
    case "strings": return Array.isArray(v) && v.every((x) => typeof x === "string") ? v.join("\n") : undefined;
    case "text":
    case "long": return typeof v === "string" ? v : undefined;
    default: return JSON.stringify(v);
  }
}

// In the order of the fields, as in argumentsOf.
function sorted(all: readonly FormField[], args: Schema): Schema {
  return Object.fromEntries(all.filter((f) => Object.hasOwn(args, f.name)).map((f) => [f.name, own(args, f.name)]));
}
