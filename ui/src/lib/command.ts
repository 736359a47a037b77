// The command line that is equivalent to an action of the page. Pure.

import type { Anchor } from "./presence";
import { base64url } from "./sign";

/** Quotes a word for a POSIX shell. */
export function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

type Body = Record<string, unknown>;

// REST requests and the equivalent commands. {} in a path is a name.
const commands: readonly [string, (names: string[], body: Body) => readonly string[] | undefined][] = [
  ["POST /servers/{}/tools/{}/approve", ([s, t]) => ["tools", "approve", `${s}:${t}`]],
  ["POST /servers/{}/tools/{}/enable", ([s, t]) => ["tools", "enable", `${s}:${t}`]],
  ["POST /servers/{}/prompts/{}/approve", ([s, p]) => ["tools", "approve", "--kind", "prompt", `${s}:${p}`]],
  ["POST /servers/{}/resources/{}/approve", ([s, r]) => ["tools", "approve", "--kind", "resource", `${s}:${r}`]],
  ["POST /servers/{}/templates/{}/approve", ([s, t]) => ["tools", "approve", "--kind", "template", `${s}:${t}`]],
  ["POST /servers/{}/instructions/approve", ([s]) => ["tools", "approve", "--kind", "instructions", s!]],
  ["POST /approvals/approve", (_, { tools }) => {
    const names = (tools as { name: string }[] | undefined)?.map((t) => t.name) ?? [];
    const servers = new Set(names.map((n) => n.split(":")[0]!));
    return names.length === 1 ? ["tools", "approve", names[0]!] : servers.size === 1 ? ["tools", "approve", [...servers][0] + ":*"] : undefined;
  }],
  ["POST /servers/{}/approve", ([s]) => ["upstream", "approve", s!]],
  ["POST /servers/{}/enable", ([s]) => ["upstream", "enable", s!]],
  ["PATCH /servers/{}", ([s], body) => {
    const [[key, value] = [], more] = Object.entries(body);
    if (key === undefined || more) return undefined;
    return ["upstream", "set", s!, key, ...(value === null ? ["--unset"] : Array.isArray(value) ? value.map(String) : [typeof value === "string" ? value : JSON.stringify(value)])];
  }],
  ["POST /pending/{}/approve", ([id]) => ["pending", "approve", id!]],
  ["POST /resume", () => ["resume"]],
  ["POST /config/confirm", () => ["config", "confirm"]],
  ["POST /leases", (_, b) => ["lease", "grant", String(b.server), "--lane", String(b.lane), "--for", String(b.for), "--calls", String(b.calls),
    ...(b.tools ? ["--tools", String(b.tools)] : []), ...(b.client ? ["--client", String(b.client)] : [])]],
  ["POST /tokens", (_, b) => ["token", "create", String(b.name), ...(b.profile ? ["--profile", String(b.profile)] : []), ...(b.servers ? ["--servers", String(b.servers)] : []),
    ...(b.lanes ? ["--lanes", String(b.lanes)] : []), ...(b.expires_in ? ["--expires", String(b.expires_in)] : [])]],
  ["PUT /presence", (_, b) => {
    const a = b.anchor as Anchor | undefined;
    return a && ["presence", "set", a.kind, ...(a.kind === "passkey" ? ["--anchor", base64url(new TextEncoder().encode(JSON.stringify(a)))] : [])];
  }],
];

/** Returns the command that is equivalent to a request; "" if there is none. */
export function command(method: string, route: string, body: unknown): string {
  for (const [pattern, words] of commands) {
    const names = new RegExp(`^${pattern.replaceAll("{}", "([^/]+)")}$`).exec(`${method} ${route}`);
    const found = names && words(names.slice(1).map(decodeURIComponent), (body ?? {}) as Body);
    if (found) return ["mcpproxy", ...found].map(quote).join(" ");
  }
  return "";
}
