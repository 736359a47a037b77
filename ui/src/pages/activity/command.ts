// Repeats the call of a record: as a command, or on the Tools page.

import type { ActivityRecord } from "../../api/types";
import { quote } from "../../lib/command";
import { masks } from "../../lib/json";
import { laneOf } from "./decision";

const longest = 2000;

function name(r: ActivityRecord): string | undefined {
  return r.server_name && r.tool_name ? `${r.server_name}:${r.tool_name}` : undefined;
}

/** Returns the command line that repeats the call; undefined if the record is incomplete. Masked values stay masked. */
export function command(r: ActivityRecord): string | undefined {
  const tool = name(r);
  const lane = laneOf(r.metadata.tool_variant);
  if (!tool || !lane || r.arguments_truncated) return undefined;
  const parts = ["mcpproxy", "call", `tool-${lane}`, quote(tool)];
  if (tool.startsWith("-")) parts.splice(3, 0, "--tool-name");
  const args = r.arguments as Record<string, unknown> | undefined;
  if (args !== undefined && Object.keys(args ?? {}).length > 0) parts.push("--args", quote(JSON.stringify(args)));
  const { reason, data_sensitivity } = r.metadata.intent ?? {};
  if (reason) parts.push("--reason", quote(reason));
  if (data_sensitivity) parts.push("--sensitivity", quote(data_sensitivity));
  return parts.join(" ");
}

/** Returns the number of masked values in a JSON value. */
export function maskedIn(value: unknown): number {
  return masks(JSON.stringify(value) ?? "").filter((t) => t.kind === "masked").length;
}

/** Returns the URL parameters to repeat the call on the Tools page; undefined if the record is incomplete or the arguments are too long for a URL. */
export function again(r: ActivityRecord): Record<string, string> | undefined {
  const tool = name(r);
  if (!tool || r.arguments_truncated || r.arguments === undefined || maskedIn(r.arguments) > 0) return undefined;
  const args = JSON.stringify(r.arguments);
  return args.length > longest ? undefined : { id: tool, args };
}

/** Returns the text parts of a result, joined; undefined if it has none. */
export function answerText(response: unknown): string | undefined {
  if (typeof response === "string") return response;
  const content = (response as { content?: unknown } | undefined)?.content;
  if (!Array.isArray(content)) return undefined;
  const texts = content.flatMap((c: { type?: string; text?: unknown }) => (c?.type === "text" && typeof c.text === "string" ? [c.text] : []));
  return texts.length ? texts.join("\n\n") : undefined;
}
