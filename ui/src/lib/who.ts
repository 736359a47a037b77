// The actor of an action and its origin, in words.

import { own } from "./own";

/** Returns an actor as words: "an agent", "a user". */
export function actorWords(actor: string | undefined): string {
  if (!actor) return "";
  if (actor === "agent") return "an agent";
  if (actor === "admin") return "a user";
  if (actor === "system") return "MCPProxy";
  return actor.replace(/^agent:/, "agent ");
}

const surfaces: Record<string, string> = { rest: "over REST", cli: "on the command line", ui: "in the web UI", "client form": "in the client's form" };

/** Returns the interface of an action: "over REST"; empty for MCP. */
export function surfaceWords(source: string | undefined): string {
  return own(surfaces, source) ?? "";
}

/** Returns the actor and the interface: "a user in the web UI". */
export function byWords(actor: string | undefined, source: string | undefined): string {
  return [actorWords(actor), surfaceWords(source)].filter(Boolean).join(" ");
}
