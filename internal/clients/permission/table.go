package permission

import (
	"mcpproxy/internal/clients"
)

// clientPermissions describes a client's permissions.
type clientPermissions struct {
	clients.Client
	// basis is the source of the facts.
	basis string
	// rules returns the files with permissions, in addition to the files with servers.
	rules func(clients.Env) []clients.File
	// otherFiles returns files with a purpose other than permissions and servers.
	otherFiles func(clients.Env) []clientFile
	decide     func(toolQuery) toolDecision
	// edits returns the edits that write the rules. It is nil if there is no file for them.
	edits func([]wantedRule) []fileEdit
	// wholeEntries reports that a rule can apply to all tools of an entry.
	wholeEntries bool
	// target returns the file for the rules. If it is nil, the user's file with rules is used, or else the user's file
	// with servers.
	target func(clients.Env) clients.File
	// atEntry reports that the rules are in the server's entry, which must exist.
	atEntry bool
	// notes are always shown. manual contains the user's steps if there is no file, or in addition to the file.
	// wholeEntryManualSteps replaces it for whole entries. Both can contain {runs}, {asks}, {of}, {flags} and {servers}.
	notes                         []string
	manual, wholeEntryManualSteps string
	// fileNotes returns notes that depend on the files and the working directory.
	fileNotes func(all clientDocs, dir string) []string
	// ignored returns rules without effect.
	ignored func(toolQuery) []Rule
}

// clientsByID contains all clients by id.
var clientsByID = map[string]clientPermissions{
	"claude-code": {basis: "documented", rules: claudeRuleFiles, decide: claudeDecision, edits: claudeEdits, wholeEntries: true, ignored: claudeIgnoredRules,
		notes: []string{"--permission-mode, --allowedTools, --disallowedTools, a hook, and settings from a server of the vendor can override this."}},
	"claude-desktop": {basis: "unverified", decide: unknownUnlessDenied,
		manual: "Settings → Connectors → {servers} → Tool permissions: choose \"Always allow\" for {runs}, and \"Needs approval\" for {asks}. This setting is not in a file: the block \"permissions\" for claude_desktop_config.json on some web pages is not documented. The hints only group the tools; they do not skip a question."},
	"cursor": {basis: "documented", rules: cursorRuleFiles, decide: cursorDecision, edits: cursorEdits, wholeEntries: true,
		manual: "Cursor Settings → Agents → Run Mode must be Allowlist or Auto-review. This setting is not in a file.",
		notes:  []string{"A list in permissions.json, even an empty one, replaces the list in Cursor's settings: add the entries for your other servers to the file.", "An administrator's list takes precedence over the file. The Cursor CLI has its own list in .cursor/cli.json, with items such as Mcp(ENTRY:TOOL)."}},
	"vscode": {basis: "unverified", rules: vscodeRuleFiles, decide: vscodeDecision,
		manual: "No setup is necessary for {runs}: VS Code runs tools marked read-only without confirmation. If it still asks, run \"Chat: Manage Tool Approval\" and tick them under {servers}; leave {asks} unticked there. \"Chat: Reset Tool Confirmations\" resets these approvals.",
		notes:  []string{"No setting approves a single MCP tool. An administrator's policy can forbid these approvals."}},
	"codex": {basis: "source", decide: codexDecision, edits: codexEdits, wholeEntries: true, atEntry: true,
		notes: []string{"--config, --profile, --ask-for-approval and --full-auto can override this, and so can requirements of an administrator."}},
	"gemini": {basis: "documented", rules: geminiRuleFiles, decide: geminiDecision, edits: geminiEdits, wholeEntries: true,
		target: geminiPolicyFile, fileNotes: geminiFolderTrustNotes,
		otherFiles: func(e clients.Env) []clientFile {
			return []clientFile{{fileSwitches, geminiSwitchesFile(e)}, {fileTrustedFolders, geminiTrustedFoldersFile(e)}}
		},
		notes: []string{"Policies of a project (.gemini/policies) are disabled at present and have no effect. --yolo, --policy and --allowed-mcp-server-names can override this."}},
	"windsurf": {basis: "unverified", decide: unknownUnlessDenied,
		manual: "Approvals of MCP tools are not in a file, and no use of hints was found. When Cascade asks about {runs}, allow it always. Do not do this for {asks}."},
	"opencode": {basis: "documented", decide: opencodeDecision, edits: opencodeEdits, wholeEntries: true,
		notes: []string{"Without rules, opencode runs everything. The section permission of an agent overrides these rules."}},
	"zed": {basis: "documented", decide: zedDecision, edits: zedEdits,
		wholeEntryManualSteps: "Zed's settings name single tools. When it asks about {runs}, choose \"Always allow\". Do not do this for {asks}.",
		notes:                 []string{"This is for Zed 0.224 and later. The agent's profile limits its tools."}},
	"copilot": {basis: "unverified", decide: copilotDecision,
		manual: "Start it with rules, because its saved rules apply to one directory only:\n  copilot {flags}\nor answer \"always\" once in each project for {runs}; never for {asks}."},
	"goose": {basis: "source", rules: gooseRuleFiles, decide: gooseDecision, edits: gooseEdits,
		wholeEntryManualSteps: "Goose's lists name single tools. In Smart Approve it runs tools marked read-only: choose it with `goose configure` → Goose Settings → goose mode.",
		notes:                 []string{"The mode takes precedence: in auto, the default of Goose, everything runs despite the lists. `goose configure` → Goose Settings → goose mode → Smart Approve. The variable GOOSE_MODE overrides the file."}},
	"cline": {basis: "source", decide: clineDecision, edits: approvedListEdits, atEntry: true,
		manual:                "In Cline, Auto-approve → Use MCP servers must be on. This setting is not in a file. Without it, every call asks.",
		wholeEntryManualSteps: "Cline's list names single tools. In Cline, open the list of MCP servers, and tick Auto-approve for {runs}; leave {asks} unticked."},
	"lmstudio": {basis: "unverified", decide: unknownUnlessDenied,
		manual: "When LM Studio asks about {runs}, choose \"Always allow\". Do not do this for {asks}. Your choices are listed at App Settings → Tools & Integrations. No file is documented, and no use of hints was found."},
	"kiro": {basis: "documented", decide: approvedListDecision, edits: approvedListEdits, wholeEntries: true, atEntry: true,
		notes: []string{"The file of a workspace (.kiro/settings/mcp.json) takes precedence over the user's."}},
	"junie": {basis: "unverified", decide: unknownUnlessDenied,
		manual: "Settings → Tools → Junie → Action Allowlist: allow {runs}{of} there; leave {asks} out. Do not enable \"Brave mode\": it never asks. No file is documented, and no use of hints was found."},
}

// allFiles returns all files that the client reads.
func (c clientPermissions) allFiles(e clients.Env) []clientFile {
	var all []clientFile
	for _, f := range c.Files(e) {
		all = append(all, clientFile{fileServers, f})
	}
	if c.rules != nil {
		for _, f := range c.rules(e) {
			all = append(all, clientFile{fileRules, f})
		}
	}
	if c.otherFiles != nil {
		all = append(all, c.otherFiles(e)...)
	}
	return all
}

// targetFile returns the file for the rules.
func (c clientPermissions) targetFile(e clients.Env) clientFile {
	if c.target != nil {
		return clientFile{fileRules, c.target(e)}
	}
	for _, f := range c.allFiles(e) {
		if f.kind == fileRules && f.Scope == clients.User {
			return f
		}
	}
	return clientFile{fileServers, c.TargetFile(e)}
}

// findClient returns the client with that id, name or alias.
func findClient(word string) (clientPermissions, error) {
	known, err := clients.FindClient(word)
	if err != nil {
		return clientPermissions{}, err
	}
	c := clientsByID[known.ID]
	c.Client = known
	return c, nil
}
