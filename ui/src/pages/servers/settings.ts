// What of a server's configuration can be changed, as text that a person edits. Pure.

import type { ServerDetail } from "../../api/types";
import { commandLine, words } from "../../lib/paste";
import { maskIn } from "./model";

export interface Setting {
  key: "command" | "url" | "working_dir" | "trust" | "enabled_tools" | "disabled_tools" | "infer_hints" | "hint_overrides" | "call_timeout";
  label: string;
  /** Below the field. */
  note: string;
  /** A few words to choose from; "" takes the key out of the file. */
  choices?: readonly { value: string; label: string }[];
  /** The field has several lines. */
  lines?: boolean;
  /** What is shown while nothing is set. */
  unset: string;
  /** Part of how it is started or reached: a changed one is reviewed again. */
  launch?: boolean;
}

export const settings: readonly Setting[] = [
  { key: "command", label: "Command", note: "The program and its arguments, on one line; quotes keep words together.", lines: true, unset: "none", launch: true },
  { key: "url", label: "URL", note: "Where the server answers.", unset: "none", launch: true },
  { key: "working_dir", label: "Directory", note: "What the command starts in; empty for that of MCPProxy.", unset: "that of MCPProxy", launch: true },
  { key: "trust", label: "Trust", note: "What becomes of tools that nobody has approved: manual waits for you always, scan when the scanner finds something, auto never.", choices: ["manual", "scan", "auto"].map((value) => ({ value, label: value })), unset: "as in general" },
  { key: "enabled_tools", label: "Allowed tools", note: "Names or patterns, one a line. Empty: all.", lines: true, unset: "all" },
  { key: "disabled_tools", label: "Denied tools", note: "Names or patterns, one a line. Nobody can switch them on but who edits this.", lines: true, unset: "none" },
  { key: "hint_overrides", label: "Hints", note: "Names or patterns of tools with the hints that count instead of the server’s, as JSON.", lines: true, unset: "as the server says" },
  { key: "infer_hints", label: "Without hints", note: "What is made of tools that carry no hints.", choices: [{ value: "", label: "as in general" }, ...["off", "advise", "enforce"].map((value) => ({ value, label: value }))], unset: "as in general" },
  { key: "call_timeout", label: "Call timeout", note: "How long a call may take, such as 30s or 5m. Empty: the general one.", unset: "as in general" },
];

/** Returns the settings that a server of this kind has. */
export function settingsOf(d: Pick<ServerDetail, "protocol">): Setting[] {
  const not = d.protocol === "stdio" ? ["url"] : ["command", "working_dir"];
  return settings.filter((s) => !not.includes(s.key));
}

/** Returns the value as it is in force; undefined when the file does not say it. */
export function valueOf(d: ServerDetail, key: Setting["key"]): unknown {
  const l = d.launch;
  switch (key) {
    case "command": return l?.command ? [l.command, ...(l.args ?? [])] : undefined;
    case "url": return l?.url;
    case "working_dir": return l?.working_dir;
    case "enabled_tools": return d.enabled_tools?.length ? d.enabled_tools : undefined;
    case "disabled_tools": return d.disabled_tools?.length ? d.disabled_tools : undefined;
    default: return d[key];
  }
}

/** Returns the value as text; "" when nothing is set. */
export function textOf(d: ServerDetail, key: Setting["key"]): string {
  const v = valueOf(d, key);
  if (v === undefined) return "";
  if (key === "command") return commandLine(d.launch ?? {});
  if (Array.isArray(v)) return v.join("\n");
  return typeof v === "object" ? JSON.stringify(v, null, 2) : String(v);
}

/** Returns what PATCH takes for a text, null to take the key out. Throws an Error with what to do. */
export function parsed(key: Setting["key"], text: string): unknown {
  const t = text.trim();
  if (key === "command" || key === "url") {
    if (!t) throw new Error(`The server needs a ${key === "url" ? "URL" : "command"}. To stop it, disable it.`);
    const mask = maskIn(t);
    if (mask) throw new Error(`${mask} stands for a secret that is not shown. Write the secret in its place, or a reference such as \${env:NAME}.`);
    return key === "url" ? t : words(t);
  }
  if (!t) return null;
  if (key === "enabled_tools" || key === "disabled_tools") return t.split("\n").map((line) => line.trim()).filter(Boolean);
  if (key !== "hint_overrides") return t;
  let value: unknown;
  try {
    value = JSON.parse(t);
  } catch (error) {
    throw new Error(`This is not JSON: ${error instanceof Error ? error.message : error}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error('Write an object, such as {"delete_*": {"destructiveHint": true}}.');
  return Object.keys(value).length ? value : null;
}
