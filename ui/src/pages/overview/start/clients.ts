// The clients of the first run, in its words; what is to be written is that of lib/connect.

import { clientGuides } from "../../../lib/connect";

export interface Client {
  name: string;
  /** Below its name. */
  how: string;
  /** Where the text goes. */
  where: string;
  text: (address: string) => string;
}

const of = (id: string) => (address: string) => clientGuides(address).find((g) => g.id === id)!.connect[0]!.text;

export const clients: readonly Client[] = [
  { name: "Claude Code", how: "one command", where: "Run this in a terminal. It holds for all your projects.", text: of("claude-code") },
  { name: "Cursor", how: "~/.cursor/mcp.json", where: "In ~/.cursor/mcp.json, or in .cursor/mcp.json of a project. Where the file has servers already, add the line to them.", text: of("cursor") },
  {
    name: "VS Code", how: "mcp.json of the user",
    where: "In .vscode/mcp.json of a project, or in the user’s mcp.json: ~/.config/Code/User/ on Linux, ~/Library/Application Support/Code/User/ on macOS, %APPDATA%\\Code\\User\\ on Windows.",
    text: of("vscode"),
  },
  { name: "Codex", how: "~/.codex/config.toml", where: "In ~/.codex/config.toml, or in .codex/config.toml of a trusted project. Reads run by themselves; writes and destructive calls ask.", text: of("codex") },
  { name: "Another", how: "the address", where: "Any client that speaks MCP over streamable HTTP takes this address.", text: (url) => url },
];
