// Who did something, and from where, in words.

import { own } from "./own";

/** Returns an actor as words: "an agent", "a person". */
export function actorWords(actor: string | undefined): string {
  if (!actor) return "";
  if (actor === "agent") return "an agent";
  if (actor === "admin") return "a person";
  if (actor === "system") return "MCPProxy";
  return actor.replace(/^agent:/, "agent ");
}

const surfaces: Record<string, string> = { rest: "over REST", cli: "on the command line", ui: "in this page", "client form": "in its own form" };

/** Returns the surface that something came by: "over REST"; empty for MCP. */
export function surfaceWords(source: string | undefined): string {
  return own(surfaces, source) ?? "";
}

/** Returns who it was, and from where: "a person in this page". */
export function byWords(actor: string | undefined, source: string | undefined): string {
  return [actorWords(actor), surfaceWords(source)].filter(Boolean).join(" ");
}
