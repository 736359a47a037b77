// Texts about MCP clients: the names that they use in the protocol, and the labels of their states.
// GET /clients returns all other texts.

import type { Asking, Client, Lane, PermissionLane } from "../api/types";
import { own } from "./own";

// The name of a client in initialize, if it differs from its id and its display name.
const callsItself: Record<string, string> = {
  "claude-ai": "claude-desktop", "codex-mcp-client": "codex", "cursor-vscode": "cursor", "gemini-cli-mcp-client": "gemini", "visual-studio-code": "vscode", "visual studio code": "vscode",
  "github-copilot-developer": "copilot",
};

const bare = (name: string) => name.toLowerCase().replaceAll(/[\s_-]+/g, "");

/** Returns the known client with this name in the protocol, if any. */
export function clientOf(name: string, all: readonly Client[]): Client | undefined {
  const id = own(callsItself, name.toLowerCase());
  return all.find((c) => (id ? c.id === id : bare(c.id) === bare(name) || bare(c.name) === bare(name)));
}

/** Returns the display name of a client: "claude-code" is "Claude Code". Unknown names stay. */
export function clientName(name: string, all: readonly Client[]): string {
  return clientOf(name, all)?.name ?? name;
}

/** The connection state of a client. */
export type Standing = "connected" | "broken" | "missing" | "foreign" | "not";

export function standing(c: Client): Standing {
  if (!c.connected) return c.broken.length ? "broken" : "not";
  if (c.missing) return "missing";
  return c.foreign ? "foreign" : "connected";
}

/** Returns the profile that the entry of a connected client leads to, if any. */
export function profileOf(c: Client): string | undefined {
  return /(?:\/mcp\/p\/|--profile[ =])([^\s/?]+)/.exec(c.leads_to ?? "")?.[1];
}

export const verdictWords: Record<Asking, string> = { runs: "runs", asks: "asks", denied: "denied", unknown: "unknown" };

/** Returns the permission of a client for a lane. */
export function laneOf(c: Client, lane: Lane): PermissionLane | undefined {
  return c.permissions?.lanes.find((l) => l.lane === lane);
}

/** Returns the position of a rule: "~/.codex/config.toml, line 12", or "" for a default of the client. */
export function placeOf(rule: PermissionLane["rule"]): string {
  if (!rule.path) return "";
  return short(rule.path) + (rule.line ? `, line ${rule.line}` : "");
}

/** Returns a path with ~ for the home of an account. */
export function short(path: string): string {
  return path.replace(/^(\/home\/[^/]+|\/root|\/Users\/[^/]+|[A-Z]:\\Users\\[^\\]+)(?=[/\\])/, "~");
}

export interface DiffLine { kind: "same" | "added" | "removed"; text: string }

/** Returns the lines of a difference as REST writes it: "+ ", "- " or two spaces before each. */
export function diffLines(text: string): DiffLine[] {
  return text.split("\n").map((l) => ({ kind: l.startsWith("+") ? "added" : l.startsWith("-") ? "removed" : "same", text: /^[-+ ] /.test(l) ? l.slice(2) : l }));
}
