package permission

import (
	"mcpproxy/internal/clients"
)

// client is what is known of one.
type client struct {
	clients.Client
	// basis says where what is known comes from.
	basis string
	// rules are the files that hold permissions, beside those of servers.
	rules func(clients.Env) []clients.File
	// more are files of another kind.
	more  func(clients.Env) []file
	judge func(question) decision
	// parts are the edits that make the rules; nil where there is no file for them.
	parts func(server string, tools []Tool) []edit
	// target is the file that they belong into; nil: the user's file of rules, or of
	// servers where there is none.
	target func(clients.Env) clients.File
	// atEntry says that the rules stand in the entry of the server, which must be
	// there first.
	atEntry bool
	// notes are always said; hand is what to do where there is no file, or besides it.
	notes []string
	hand  string
	// says are notes that follow from the files and the working directory.
	says func(all docs, dir string) []string
	// ignored are rules that look as if they counted.
	ignored func(question) []Rule
}

// table has all clients by their ids.
var table = map[string]client{
	"claude-code": {basis: "documented", rules: claudeRuleFiles, judge: claude, parts: claudeParts, ignored: claudeIgnored,
		notes: []string{"--permission-mode, --allowedTools, --disallowedTools, a hook, and settings from a server of the vendor can decide otherwise."}},
	"claude-desktop": {basis: "unverified", judge: asksByItself,
		hand: "Settings → Connectors → mcpproxy → Tool permissions: choose \"Always allow\" for %s, and \"Needs approval\" for %s. No file holds this: the block \"permissions\" that some pages show in claude_desktop_config.json is documented nowhere. The hints of the tools only group them there; they answer no question."},
	"cursor": {basis: "documented", rules: cursorRuleFiles, judge: cursor, parts: cursorParts,
		hand:  "Cursor Settings → Agents → Run Mode must be Allowlist or Auto-review: no file says it.",
		notes: []string{"A list in permissions.json replaces the one in Cursor's settings, also an empty one: entries for your other servers belong into the file, too.", "An administrator's list comes before the file. The Cursor CLI has a list of its own: Mcp(mcpproxy:call_tool_read) in .cursor/cli.json."}},
	"vscode": {basis: "unverified", rules: vscodeRuleFiles, judge: vscode,
		hand:  "Nothing needs to be set up for %s: VS Code runs what is marked read-only without confirmation. Where it asks all the same, run \"Chat: Manage Tool Approval\" and tick them under mcpproxy; leave %s unticked there. \"Chat: Reset Tool Confirmations\" takes back what was approved.",
		notes: []string{"No setting approves one MCP tool. A policy of an administrator can forbid all of it."}},
	"codex": {basis: "source", judge: codex, parts: codexParts, atEntry: true,
		notes: []string{"--config, --profile, --ask-for-approval and --full-auto can decide otherwise, and so can requirements of an administrator."}},
	"gemini": {basis: "documented", rules: geminiRuleFiles, judge: gemini, parts: geminiParts,
		target: geminiTarget, says: geminiNotes,
		more: func(e clients.Env) []file {
			return []file{{switches, geminiSwitches(e)}, {folders, geminiFolders(e)}}
		},
		notes: []string{"Policies of a project (.gemini/policies) are switched off at present: they are not counted. --yolo, --policy and --allowed-mcp-server-names can decide otherwise."}},
	"windsurf": {basis: "unverified", judge: asksByItself,
		hand: "No file holds approvals of MCP tools, and no use of their hints was found. Where Cascade asks about %s, choose to allow it always; do not for %s."},
	"opencode": {basis: "documented", judge: opencode, parts: opencodeParts,
		notes: []string{"Without rules opencode runs everything. An agent with a section permission of its own comes after these rules."}},
	"zed": {basis: "documented", judge: zed, parts: zedParts,
		notes: []string{"This is for Zed 0.224 and later. The profile of the agent says which tools it has at all."}},
	"copilot": {basis: "unverified", rules: copilotRuleFiles, judge: copilot,
		hand: "Start it with rules, since what it saves is for one directory and is its own file:\n  copilot %[3]s\nor answer \"always\" once in each project for %[1]s; never for %[2]s."},
	"goose": {basis: "source", rules: gooseRuleFiles, judge: goose, parts: gooseParts,
		notes: []string{"The mode counts first: in auto, which is Goose's own, everything runs whatever the lists say. `goose configure` → Goose Settings → goose mode → Smart Approve. The variable GOOSE_MODE outranks the file."}},
	"cline": {basis: "source", judge: cline, parts: listedParts("mcpServers"), atEntry: true,
		hand: "In Cline, Auto-approve → Use MCP servers must be ticked: no file says it. Without it every call asks."},
	"lmstudio": {basis: "unverified", judge: asksByItself,
		hand: "When LM Studio asks about %s, choose \"Always allow\"; do not for %s. What was chosen is listed at App Settings → Tools & Integrations. No file is documented, and no use of hints was found."},
	"kiro": {basis: "documented", judge: listed, parts: listedParts("mcpServers"), atEntry: true,
		notes: []string{"The file of a workspace (.kiro/settings/mcp.json) comes before the user's."}},
	"junie": {basis: "unverified", judge: asksByItself,
		hand: "Settings → Tools → Junie → Action Allowlist: allow %s of mcpproxy there; leave %s out. Do not tick \"Brave mode\", which asks for nothing. No file is documented, and no use of hints was found."},
}

// files are all that the client reads.
func (c client) files(e clients.Env) []file {
	var all []file
	for _, f := range c.Files(e) {
		all = append(all, file{servers, f})
	}
	if c.rules != nil {
		for _, f := range c.rules(e) {
			all = append(all, file{rules, f})
		}
	}
	if c.more != nil {
		all = append(all, c.more(e)...)
	}
	return all
}

// into is the file that the rules belong into.
func (c client) into(e clients.Env) file {
	if c.target != nil {
		return file{rules, c.target(e)}
	}
	for _, f := range c.files(e) {
		if f.kind == rules && f.Scope == clients.User {
			return f
		}
	}
	return file{servers, c.Target(e)}
}

// find returns the client that a word means.
func find(word string) (client, error) {
	known, err := clients.Find(word)
	if err != nil {
		return client{}, err
	}
	c := table[known.ID]
	c.Client = known
	return c, nil
}
