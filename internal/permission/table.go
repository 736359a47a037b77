package permission

import (
	"path/filepath"
	"strings"

	"mcpproxy/internal/clientfile"
	"mcpproxy/internal/problem"
)

// client is what is known of one.
type client struct {
	id, name string
	also     []string // other words for it
	// basis says where what is known comes from.
	basis string
	files func(Env) []file
	judge func(question) decision
	// parts are the edits that make the rules; nil where there is no file for them.
	parts func(server string, tools []Tool) []edit
	// target is the file that they belong into; nil: the user's file of rules.
	target func(Env) file
	// atEntry says that the rules stand in the entry of the server, which must be
	// there first.
	atEntry bool
	// notes are always said; hand is what to do where there is no file, or besides it.
	notes []string
	hand  string
	// ignored are rules that look as if they counted.
	ignored func(question) []Rule
}

// clients are all, in the order in which they are listed.
var clients = []client{
	{id: "claude-code", name: "Claude Code", also: []string{"claude"}, basis: "documented", files: claudeFiles, judge: claude, parts: claudeParts, ignored: claudeIgnored,
		notes: []string{"--permission-mode, --allowedTools, --disallowedTools, a hook, and settings from a server of the vendor can decide otherwise."}},
	{id: "claude-desktop", name: "Claude Desktop", also: []string{"desktop"}, basis: "unverified", files: desktopFiles, judge: asksByItself,
		hand: "Settings → Connectors → mcpproxy → Tool permissions: choose \"Always allow\" for %s, and \"Needs approval\" for %s. No file holds this: the block \"permissions\" that some pages show in claude_desktop_config.json is documented nowhere. The hints of the tools only group them there; they answer no question."},
	{id: "cursor", name: "Cursor", basis: "documented", files: cursorFiles, judge: cursor, parts: cursorParts,
		hand:  "Cursor Settings → Agents → Run Mode must be Allowlist or Auto-review: no file says it.",
		notes: []string{"A list in permissions.json replaces the one in Cursor's settings, also an empty one: entries for your other servers belong into the file, too.", "An administrator's list comes before the file. The Cursor CLI has a list of its own: Mcp(mcpproxy:call_tool_read) in .cursor/cli.json."}},
	{id: "vscode", name: "VS Code", also: []string{"code", "copilot-chat"}, basis: "unverified", files: vscodeFiles, judge: vscode,
		hand:  "Nothing needs to be set up for %s: VS Code runs what is marked read-only without confirmation. Where it asks all the same, run \"Chat: Manage Tool Approval\" and tick them under mcpproxy; leave %s unticked there. \"Chat: Reset Tool Confirmations\" takes back what was approved.",
		notes: []string{"No setting approves one MCP tool. A policy of an administrator can forbid all of it."}},
	{id: "codex", name: "Codex", basis: "source", files: codexFiles, judge: codex, parts: codexParts, atEntry: true,
		target: func(e Env) file { return codexFiles(e)[1] },
		notes:  []string{"--config, --profile, --ask-for-approval and --full-auto can decide otherwise, and so can requirements of an administrator."}},
	{id: "gemini", name: "Gemini CLI", also: []string{"gemini-cli"}, basis: "documented", files: geminiFiles, judge: gemini, parts: geminiParts,
		target: func(e Env) file {
			return file{rules, userScope, filepath.Join(e.home(".gemini", "policies"), "mcpproxy.toml"), clientfile.TOML, nil}
		},
		notes: []string{"Policies of a project (.gemini/policies) are switched off at present: they are not counted. --yolo, --policy and --allowed-mcp-server-names can decide otherwise."}},
	{id: "windsurf", name: "Windsurf", also: []string{"cascade"}, basis: "unverified", files: inHome(".codeium", "windsurf", "mcp_config.json"), judge: asksByItself,
		hand: "No file holds approvals of MCP tools, and no use of their hints was found. Where Cascade asks about %s, choose to allow it always; do not for %s."},
	{id: "opencode", name: "opencode", basis: "documented", files: opencodeFiles, judge: opencode, parts: opencodeParts,
		target: opencodeTarget,
		notes:  []string{"Without rules opencode runs everything. An agent with a section permission of its own comes after these rules."}},
	{id: "zed", name: "Zed", basis: "documented", files: zedFiles, judge: zed, parts: zedParts,
		target: func(e Env) file { return zedFiles(e)[0] },
		notes:  []string{"This is for Zed 0.224 and later. The profile of the agent says which tools it has at all."}},
	{id: "copilot", name: "GitHub Copilot CLI", also: []string{"copilot-cli"}, basis: "unverified", files: copilotFiles, judge: copilot,
		hand: "Start it with rules, since what it saves is for one directory and is its own file:\n  copilot %[3]s\nor answer \"always\" once in each project for %[1]s; never for %[2]s."},
	{id: "goose", name: "Goose", basis: "source", files: gooseFiles, judge: goose, parts: gooseParts,
		notes: []string{"The mode counts first: in auto, which is Goose's own, everything runs whatever the lists say. `goose configure` → Goose Settings → goose mode → Smart Approve. The variable GOOSE_MODE outranks the file."}},
	{id: "cline", name: "Cline", basis: "source", files: clineFiles, judge: cline, parts: listedParts("mcpServers"), atEntry: true,
		target: func(e Env) file { return clineFiles(e)[0] },
		hand:   "In Cline, Auto-approve → Use MCP servers must be ticked: no file says it. Without it every call asks."},
	{id: "lmstudio", name: "LM Studio", also: []string{"lm-studio"}, basis: "unverified", files: inHome(".lmstudio", "mcp.json"), judge: asksByItself,
		hand: "When LM Studio asks about %s, choose \"Always allow\"; do not for %s. What was chosen is listed at App Settings → Tools & Integrations. No file is documented, and no use of hints was found."},
	{id: "kiro", name: "Kiro", basis: "documented", files: kiroFiles, judge: listed, parts: listedParts("mcpServers"), atEntry: true,
		target: func(e Env) file { return kiroFiles(e)[0] },
		notes:  []string{"The file of a workspace (.kiro/settings/mcp.json) comes before the user's."}},
	{id: "junie", name: "Junie", basis: "unverified", files: inHome(".junie", "mcp", "mcp.json"), judge: asksByItself,
		hand: "Settings → Tools → Junie → Action Allowlist: allow %s of mcpproxy there; leave %s out. Do not tick \"Brave mode\", which asks for nothing. No file is documented, and no use of hints was found."},
}

// opencodeTarget is the file of the user that is there, opencode.jsonc before
// opencode.json, or the latter.
func opencodeTarget(e Env) file {
	files := opencodeFiles(e)
	if exists(files[2].path) {
		return files[2]
	}
	return files[1]
}

// into is the file that the rules belong into.
func (c client) into(e Env) file {
	if c.target != nil {
		return c.target(e)
	}
	for _, f := range c.files(e) {
		if f.kind == rules && f.scope == userScope {
			return f
		}
	}
	return file{}
}

// IDs are the names of all clients.
func IDs() []string {
	var ids []string
	for _, c := range clients {
		ids = append(ids, c.id)
	}
	return ids
}

// find returns the client that a word means.
func find(word string) (client, error) {
	plain := strings.ToLower(strings.Join(strings.FieldsFunc(word, func(r rune) bool { return r == ' ' || r == '_' || r == '-' }), "-"))
	for _, c := range clients {
		for _, name := range append([]string{c.id, strings.ReplaceAll(strings.ToLower(c.name), " ", "-")}, c.also...) {
			if plain == name {
				return c, nil
			}
		}
	}
	return client{}, problem.New(problem.NotFound, "No client is called "+quoted(word)+".", "Known are "+strings.Join(IDs(), ", ")+".")
}
