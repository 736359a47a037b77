import type { ToolSettings } from "../../api/types";

/** The form for the settings of a tool. */
export interface Form { alias: string; mode: "" | "replace" | "add"; text: string; always: boolean }

export function formOf(s: ToolSettings = {}): Form {
  return { alias: s.alias ?? "", mode: s.description ? "replace" : s.add_description ? "add" : "", text: s.description ?? s.add_description ?? "", always: s.always ?? false };
}

/** Returns the members that differ from the settings; null removes one. */
export function changesOf(before: ToolSettings = {}, f: Form): Partial<Record<keyof ToolSettings, string | boolean | null>> {
  const after: ToolSettings = {
    alias: f.alias.trim() || undefined, description: f.mode === "replace" ? f.text.trim() : undefined,
    add_description: f.mode === "add" ? f.text.trim() : undefined, always: f.always || undefined,
  };
  const changes: ReturnType<typeof changesOf> = {};
  for (const key of Object.keys(after) as (keyof ToolSettings)[]) if ((after[key] ?? null) !== (before[key] ?? null)) changes[key] = after[key] ?? null;
  return changes;
}
