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
  /** What `mcpproxy permissions` calls it; absent where no file sets what it asks for. */
  permissions?: string;
}

/** The address that a client gets when status does not name one. */
export const usualAddress = "http://127.0.0.1:8080/mcp";

/** Returns how well-known clients are connected to the address of /mcp, the most used first. */
export function clientGuides(address: string = usualAddress): readonly ClientGuide[] {
  return [
    {
      id: "claude-code", name: "Claude Code",
      connect: [
        { where: "Run", text: `claude mcp add --scope user --transport http mcpproxy ${address}` },
        { where: "Or in .mcp.json of a project", text: file("mcpServers", { type: "http", url: address }) },
      ],
      permissions: "claude-code",
    },
    {
      id: "cursor", name: "Cursor",
      connect: [{ where: "In ~/.cursor/mcp.json, or .cursor/mcp.json of a project", text: file("mcpServers", { url: address }) }],
      permissions: "cursor",
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
      connect: [{ where: "In ~/.codex/config.toml", text: `[mcp_servers.mcpproxy]\nurl = "${address}"` }],
      permissions: "codex",
    },
    {
      id: "gemini-cli", name: "Gemini CLI",
      connect: [{ where: "In ~/.gemini/settings.json", text: file("mcpServers", { httpUrl: address }), note: "The key url would mean the old SSE transport. Do not set trust: it lets everything pass." }],
      permissions: "gemini",
    },
    { id: "copilot-cli", name: "GitHub Copilot CLI", connect: [{ where: "In ~/.copilot/mcp-config.json", text: file("mcpServers", { type: "http", url: address, tools: ["*"] }) }] },
    { id: "goose", name: "Goose", permissions: "goose", connect: [{ where: "In ~/.config/goose/config.yaml", text: goose(address), note: "In the smart approval mode it asks for tools that are not marked read-only." }] },
    {
      id: "claude-desktop", name: "Claude Desktop",
      connect: [{
        where: "In claude_desktop_config.json", text: file("mcpServers", { command: "/usr/local/bin/mcpproxy", args: ["stdio"] }),
        note: "It starts only commands. Write the whole path of the program: it often has another PATH than your shell.",
      }],
    },
    { id: "windsurf", name: "Windsurf", connect: [{ where: "In ~/.codeium/windsurf/mcp_config.json", text: file("mcpServers", { serverUrl: address }) }] },
    { id: "antigravity", name: "Antigravity", connect: [{ where: "In ~/.gemini/config/mcp_config.json", text: file("mcpServers", { serverUrl: address }) }] },
    { id: "zed", name: "Zed", permissions: "zed", connect: [{ where: "In ~/.config/zed/settings.json", text: file("context_servers", { url: address }) }] },
    { id: "opencode", name: "opencode", permissions: "opencode", connect: [
      { where: "In ~/.config/opencode/opencode.json, of version 2", text: pretty({ mcp: { servers: { mcpproxy: { type: "remote", url: address } } } }) },
      { where: "In the same file, of version 1", text: file("mcp", { type: "remote", url: address, enabled: true }) },
    ] },
    { id: "cline", name: "Cline", permissions: "cline", connect: [{ where: "In cline_mcp_settings.json of VS Code's globalStorage", text: file("mcpServers", { type: "streamableHttp", url: address }) }] },
    { id: "kiro", name: "Kiro", permissions: "kiro", connect: [{ where: "In ~/.kiro/settings/mcp.json", text: file("mcpServers", { url: address }) }] },
    { id: "lm-studio", name: "LM Studio", connect: [{ where: "In ~/.lmstudio/mcp.json", text: file("mcpServers", { url: address }) }] },
    { id: "jetbrains", name: "JetBrains AI Assistant", connect: [{ where: "Paste at Settings, AI, MCP", text: file("mcpServers", { url: address }) }] },
  ];
}

const pretty = (value: unknown) => JSON.stringify(value, null, 2);
const file = (member: string, entry: unknown) => pretty({ [member]: { mcpproxy: entry } });

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
