// How a client is pointed at MCPProxy: the snippets of docs/guide/clients.md, which
// says more. The Clients page and the first run show them.

/** One thing to run, or to write into a file. */
export interface Snippet {
  /** What to do with it: "Run", "In ~/.cursor/mcp.json, or .cursor/mcp.json of a project". */
  where: string;
  text: string;
  /** What has to be known besides, in a sentence or two. */
  note?: string;
}

export interface ClientGuide {
  id: string;
  name: string;
  /** Ways to connect, the best first. */
  connect: readonly Snippet[];
  /** Lets what looks pass and asks for the rest; absent where no file sets it. */
  permit?: readonly Snippet[];
}

/** The address that a client gets when status does not name one. */
export const usualAddress = "http://127.0.0.1:8080/mcp";

const looks = ["retrieve_tools", "call_tool_read", "read_result", "upstream_servers"];
const changes = ["call_tool_write", "call_tool_destructive"];

/** Returns how well-known clients are connected to the address of /mcp, the most used first. */
export function clientGuides(address: string = usualAddress): readonly ClientGuide[] {
  return [
    {
      id: "claude-code", name: "Claude Code",
      connect: [
        { where: "Run", text: `claude mcp add --scope user --transport http mcpproxy ${address}` },
        { where: "Or in .mcp.json of a project", text: file("mcpServers", { type: "http", url: address }) },
      ],
      permit: [{
        where: "In ~/.claude/settings.json",
        text: pretty({ permissions: { allow: looks.map((t) => "mcp__mcpproxy__" + t), ask: changes.map((t) => "mcp__mcpproxy__" + t) } }),
        note: "The middle part is the name under which MCPProxy was added.",
      }],
    },
    {
      id: "cursor", name: "Cursor",
      connect: [{ where: "In ~/.cursor/mcp.json, or .cursor/mcp.json of a project", text: file("mcpServers", { url: address }) }],
      permit: [{
        where: "In ~/.cursor/permissions.json, with the Run Mode Allowlist or Auto-review",
        text: pretty({ mcpAllowlist: looks.map((t) => "mcpproxy:" + t) }),
        note: "A list in this file replaces the one made in the settings: entries for your other servers belong into it, too.",
      }],
    },
    {
      id: "vscode", name: "VS Code (GitHub Copilot)",
      connect: [{
        where: "In .vscode/mcp.json of a project, or your own mcp.json", text: file("servers", { type: "http", url: address }),
        note: "It runs tools that are marked read-only without asking; there is nothing to set up. Leave chat.tools.global.autoApprove off: it approves everything.",
      }],
    },
    {
      id: "codex", name: "Codex (CLI, app, IDE)",
      connect: [{ where: "In ~/.codex/config.toml; this sets what it asks for, too", text: codex(address) }],
    },
    {
      id: "gemini-cli", name: "Gemini CLI",
      connect: [{ where: "In ~/.gemini/settings.json", text: file("mcpServers", { httpUrl: address }), note: "The key url would mean the old SSE transport. Do not set trust: it lets everything pass." }],
      permit: [{ where: "In ~/.gemini/policies/mcpproxy.toml", text: gemini(), note: "The server's name must have no underscore, or the rules have no effect." }],
    },
    { id: "copilot-cli", name: "GitHub Copilot CLI", connect: [{ where: "In ~/.copilot/mcp-config.json", text: file("mcpServers", { type: "http", url: address, tools: ["*"] }) }] },
    { id: "goose", name: "Goose", connect: [{ where: "In ~/.config/goose/config.yaml", text: goose(address), note: "In the smart approval mode it asks for tools that are not marked read-only." }] },
    {
      id: "claude-desktop", name: "Claude Desktop",
      connect: [{
        where: "In claude_desktop_config.json", text: file("mcpServers", { command: "/usr/local/bin/mcpproxy", args: ["stdio"] }),
        note: "It starts only commands. Write the whole path of the program: it often has another PATH than your shell.",
      }],
    },
    { id: "windsurf", name: "Windsurf", connect: [{ where: "In ~/.codeium/windsurf/mcp_config.json", text: file("mcpServers", { serverUrl: address }) }] },
    { id: "antigravity", name: "Antigravity", connect: [{ where: "In ~/.gemini/config/mcp_config.json", text: file("mcpServers", { serverUrl: address }) }] },
    { id: "zed", name: "Zed", connect: [{ where: "In ~/.config/zed/settings.json", text: file("context_servers", { url: address }) }] },
    { id: "opencode", name: "opencode", connect: [
      { where: "In ~/.config/opencode/opencode.json, of version 2", text: pretty({ mcp: { servers: { mcpproxy: { type: "remote", url: address } } } }) },
      { where: "In the same file, of version 1", text: file("mcp", { type: "remote", url: address, enabled: true }) },
    ] },
    { id: "cline", name: "Cline", connect: [{ where: "In cline_mcp_settings.json of VS Code's globalStorage", text: file("mcpServers", { type: "streamableHttp", url: address }) }] },
    { id: "kiro", name: "Kiro", connect: [{ where: "In ~/.kiro/settings/mcp.json", text: file("mcpServers", { url: address }) }] },
    { id: "lm-studio", name: "LM Studio", connect: [{ where: "In ~/.lmstudio/mcp.json", text: file("mcpServers", { url: address }) }] },
    { id: "jetbrains", name: "JetBrains AI Assistant", connect: [{ where: "Paste at Settings, AI, MCP", text: file("mcpServers", { url: address }) }] },
  ];
}

const pretty = (value: unknown) => JSON.stringify(value, null, 2);
const file = (member: string, entry: unknown) => pretty({ [member]: { mcpproxy: entry } });

function codex(address: string): string {
  const tool = (mode: string, note: string) => (name: string) => `[mcp_servers.mcpproxy.tools.${name}]\napproval_mode = "${mode}"${note}`;
  return [
    `[mcp_servers.mcpproxy]\nurl = "${address}"\ndefault_tools_approval_mode = "writes"   # ask for what is not marked read-only`,
    ...looks.map((name, i) => tool("approve", i === 0 ? "                # never ask" : "")(name)),
    ...changes.map((name, i) => tool("prompt", i === 0 ? "                 # always ask" : "")(name)),
  ].join("\n\n");
}

function gemini(): string {
  const rule = (tools: string[], decision: string, priority: number) =>
    `[[rule]]\nmcpName = "mcpproxy"\ntoolName = [${tools.map((t) => `"${t}"`).join(", ")}]\ndecision = "${decision}"\npriority = ${priority}`;
  return rule(looks, "allow", 200) + "\n\n" + rule(changes, "ask_user", 300);
}

function goose(address: string): string {
  return `extensions:\n  mcpproxy:\n    name: mcpproxy\n    description: All MCP servers behind one\n    type: streamable_http\n    uri: ${address}\n    enabled: true\n    timeout: 300`;
}

const guideIds: Record<string, string> = {
  "claude-code": "claude-code", "claude-ai": "claude-desktop", "codex-mcp-client": "codex", "cursor-vscode": "cursor", "gemini-cli-mcp-client": "gemini-cli",
  "visual studio code": "vscode", "visual-studio-code": "vscode",
};

/** Returns what people call a client that names itself so in the protocol: "claude-code" is "Claude Code". Names that are not known stay. */
export function clientName(name: string): string {
  const key = name.toLowerCase();
  const id = guideIds[key] ?? key;
  return clientGuides().find((g) => g.id === id || g.name.toLowerCase() === key)?.name.replace(/ \(.*\)$/, "") ?? name;
}
