// The hints of a tool: declared by the server, corrected by a user, and effective.

import type { ServerDetail, ToolDetail } from "../../api/types";
import { own } from "../../lib/own";

export const hintNames = ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] as const;
export type HintName = (typeof hintNames)[number];
export const hintWords: Record<HintName, string> = {
  readOnlyHint: "read-only", destructiveHint: "destructive", idempotentHint: "idempotent", openWorldHint: "open world",
};

export interface HintRow { name: HintName; said?: boolean; counts?: boolean; from: "server" | "you" | "guess" }

/** Returns the hints that have a value. */
export function hintRows(t: Pick<ToolDetail, "annotations" | "declared_annotations" | "corrected_annotations">): HintRow[] {
  const said = t.declared_annotations ?? t.annotations;
  return hintNames.filter((n) => typeof said[n] === "boolean" || typeof t.annotations[n] === "boolean").map((name) => ({
    name, said: said[name], counts: t.annotations[name],
    from: t.corrected_annotations?.[name] !== undefined ? "you" : said[name] !== undefined ? "server" : "guess",
  }));
}

export type Choice = "" | "true" | "false";
export type Choices = Record<HintName, Choice>;

/** Returns the overrides for exactly this tool. */
export function choicesOf(overrides: ServerDetail["hint_overrides"], tool: string): Choices {
  const said = own(overrides, tool) ?? {};
  return Object.fromEntries(hintNames.map((n) => [n, typeof said[n] === "boolean" ? (String(said[n]) as Choice) : ""])) as Choices;
}

/**
 * Returns hint_overrides with these choices for exactly this tool; the other entries keep their order.
 * The tool comes last, because the last matching entry wins. null if nothing is left.
 */
export function override(overrides: ServerDetail["hint_overrides"], tool: string, choices: Choices): Record<string, Record<string, boolean>> | null {
  const { [tool]: _, ...rest } = overrides ?? {};
  const said: Record<string, boolean> = { ...own(overrides, tool) };
  for (const n of hintNames) {
    if (choices[n] === "") delete said[n];
    else said[n] = choices[n] === "true";
  }
  const all = Object.keys(said).length > 0 ? { ...rest, [tool]: said } : rest;
  return Object.keys(all).length > 0 ? all : null;
}
