// How a client is connected by hand: what docs/guide/clients.md says, for the address at hand.

export interface Client {
  name: string;
  /** Below its name. */
  how: string;
  /** Where the text goes. */
  where: string;
  text: (address: string) => string;
}

const json = (value: unknown) => JSON.stringify(value, null, 2);

export const clients: readonly Client[] = [
  { name: "Claude Code", how: "one command", where: "Run this in a terminal. It holds for all your projects.", text: (url) => `claude mcp add --scope user --transport http mcpproxy ${url}` },
  { name: "Cursor", how: "~/.cursor/mcp.json", where: "In ~/.cursor/mcp.json, or in .cursor/mcp.json of a project. Where the file has servers already, add the line to them.", text: (url) => json({ mcpServers: { mcpproxy: { url } } }) },
  {
    name: "VS Code", how: "mcp.json of the user",
    where: "In .vscode/mcp.json of a project, or in the user’s mcp.json: ~/.config/Code/User/ on Linux, ~/Library/Application Support/Code/User/ on macOS, %APPDATA%\\Code\\User\\ on Windows.",
    text: (url) => json({ servers: { mcpproxy: { type: "http", url } } }),
  },
  { name: "Codex", how: "~/.codex/config.toml", where: "In ~/.codex/config.toml, or in .codex/config.toml of a trusted project. Reads run by themselves; writes and destructive calls ask.", text: codex },
  { name: "Another", how: "the address", where: "Any client that speaks MCP over streamable HTTP takes this address.", text: (url) => url },
];

function codex(url: string): string {
  const mode = (tool: string, word: string) => `\n[mcp_servers.mcpproxy.tools.${tool}]\napproval_mode = "${word}"\n`;
  return `[mcp_servers.mcpproxy]\nurl = ${JSON.stringify(url)}\ndefault_tools_approval_mode = "writes"\n` +
    ["retrieve_tools", "call_tool_read", "read_result", "upstream_servers"].map((t) => mode(t, "approve")).join("") +
    ["call_tool_write", "call_tool_destructive"].map((t) => mode(t, "prompt")).join("");
}
