// The settings of a server as editable text. Pure.

import type { ServerDetail } from "../../api/types";
import { commandLine, words } from "../../lib/paste";
import { maskIn } from "./model";

export interface Setting {
  key: "command" | "url" | "working_dir" | "trust" | "enabled_tools" | "disabled_tools" | "infer_hints" | "hint_overrides" | "call_timeout";
  label: string;
  /** Below the field. */
  note: string;
  /** The allowed values; "" removes the key from the file. */
  choices?: readonly { value: string; label: string }[];
  /** The field has several lines. */
  lines?: boolean;
  /** The text shown if nothing is set. */
  unset: string;
  /** Part of the launch: a change needs review. */
  launch?: boolean;
}

export const settings: readonly Setting[] = [
  { key: "command", label: "Command", note: "The program and its arguments, on one line. Quote arguments with spaces.", lines: true, unset: "none", launch: true },
  { key: "url", label: "URL", note: "The address of the server.", unset: "none", launch: true },
  { key: "working_dir", label: "Directory", note: "The working directory. Empty: MCPProxy’s own.", unset: "MCPProxy’s own", launch: true },
  { key: "trust", label: "Trust", note: "Which new tools need your approval. manual: all. scan: those with findings. auto: none.", choices: ["manual", "scan", "auto"].map((value) => ({ value, label: value })), unset: "default" },
  { key: "enabled_tools", label: "Allowed tools", note: "Names or patterns, one per line. Empty: all.", lines: true, unset: "all" },
  { key: "disabled_tools", label: "Denied tools", note: "Names or patterns, one per line. Only this setting can enable them again.", lines: true, unset: "none" },
  { key: "hint_overrides", label: "Hints", note: "JSON: tool names or patterns with the hints that override the server’s.", lines: true, unset: "from the server" },
  { key: "infer_hints", label: "Inferred hints", note: "How to treat tools without hints.", choices: [{ value: "", label: "default" }, ...["off", "advise", "enforce"].map((value) => ({ value, label: value }))], unset: "default" },
  { key: "call_timeout", label: "Call timeout", note: "The time limit of a call, such as 30s or 5m. Empty: the default.", unset: "default" },
];

/** Returns the settings that a server of this kind has. */
export function settingsOf(d: Pick<ServerDetail, "protocol">): Setting[] {
  const not = d.protocol === "stdio" ? ["url"] : ["command", "working_dir"];
  return settings.filter((s) => !not.includes(s.key));
}

/** Returns the current value; undefined if it is not in the file. */
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

/** Returns the PATCH value for a text, null to remove the key. Throws an Error with a hint. */
export function parsed(key: Setting["key"], text: string): unknown {
  const t = text.trim();
  if (key === "command" || key === "url") {
    if (!t) throw new Error(`The server needs a ${key === "url" ? "URL" : "command"}. To stop it, disable it.`);
    const mask = maskIn(t);
    if (mask) throw new Error(`${mask} is a masked secret. Replace it with the secret, or with a reference such as \${env:NAME}.`);
    return key === "url" ? t : words(t);
  }
  if (!t) return null;
  if (key === "enabled_tools" || key === "disabled_tools") return t.split("\n").map((line) => line.trim()).filter(Boolean);
  if (key !== "hint_overrides") return t;
  let value: unknown;
  try {
    value = JSON.parse(t);
  } catch (error) {
    throw new Error(`Invalid JSON: ${error instanceof Error ? error.message : error}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error('Enter an object, such as {"delete_*": {"destructiveHint": true}}.');
  return Object.keys(value).length ? value : null;
}
