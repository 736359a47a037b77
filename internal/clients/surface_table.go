package clients

import (
	"fmt"
	"strings"
)

// Fact is a fact about a client, its source, and the date on which the source was read.
type Fact struct{ Text, Evidence, Date string }

// SurfaceFacts contains the facts that determine a client's surface. Evidence is a page of the vendor, its source code,
// or a public issue.
type SurfaceFacts struct {
	Surface     Surface // the surface that auto writes
	Searches    Fact    // whether it searches tools itself and defers their definitions
	Prefix      Fact    // the names under which its model sees tools
	Names       Fact    // the length and the characters of names that it accepts
	WholeServer Fact    // how its files permit all tools of an entry
	KeepLoaded  Fact    // the setting that keeps it from deferring the tools of an entry

	nameFormat string // format of the entry's name and the tool's name
	nameLimit  int    // maximum length of a name in nameFormat; 0 means unknown
	keepLoaded entryObject
}

// SurfaceFacts returns the facts that determine the client's surface.
func (c Client) SurfaceFacts() SurfaceFacts {
	if f, known := surfaceTable[c.ID]; known {
		return f
	}
	return SurfaceFacts{Surface: SurfaceSearch}
}

const (
	collected    = "2026-11-20" // the date of the facts in the other tables of clients
	looked       = "2026-11-29"
	noSearch     = "no"
	notFound     = "no evidence found"
	noWholeEntry = "no"
	asBefore     = "not needed"
)

var unknownFact = Fact{"unknown", notFound, collected}

// surfaceTable contains the facts by client. A client without evidence that it searches by itself gets SurfaceSearch.
var surfaceTable = map[string]SurfaceFacts{
	"claude-code": {Surface: SurfaceLanes, nameFormat: "mcp__%s__%s", nameLimit: 64, keepLoaded: entryObject{{"alwaysLoad", true}},
		Searches:    Fact{"yes, unless `ENABLE_TOOL_SEARCH` or the provider turns it off", "code.claude.com/docs/en/mcp#scale-with-mcp-tool-search", looked},
		Prefix:      Fact{"`mcp__ENTRY__TOOL`", "vendor's page on permissions", collected},
		Names:       Fact{"64 of `A-Z a-z 0-9 _ -`", "API error in drupal.org/i/3569862", looked},
		WholeServer: Fact{"`mcp__ENTRY__*` under `allow`", "vendor's page on permissions", collected},
		KeepLoaded:  Fact{"`\"alwaysLoad\": true` in the entry, from 2.1.121", "anthropics/claude-code#54158", looked}},
	"codex": {Surface: SurfaceLanes, nameFormat: "mcp__%s__%s", nameLimit: 64,
		Searches:    Fact{"yes, from 100 tools or always, by release and model", "openai/codex#18097, #24536", looked},
		Prefix:      Fact{"TOOL in the namespace `mcp__ENTRY`, with `_` for `-`", "requests of 0.169", looked},
		Names:       Fact{"64 of `A-Z a-z 0-9 _ -`; a longer name gets a hash", "source, mcp_connection_manager.rs", looked},
		WholeServer: Fact{"`default_tools_approval_mode` in the entry", "source", collected},
		KeepLoaded:  unknownFact},
	"cursor": {Surface: SurfaceLanes, nameFormat: "%s%s", nameLimit: 60,
		Searches:    Fact{"yes, always", "cursor.com/blog/dynamic-context-discovery", looked},
		Prefix:      Fact{"`ENTRY:TOOL` in rules", "vendor's page on permissions", collected},
		Names:       Fact{"60 for entry and tool together", "Cursor's warning, as third parties quote it", looked},
		WholeServer: Fact{"`*ENTRY:*` in `mcpAllowlist`", "vendor's page on permissions", collected},
		KeepLoaded:  unknownFact},
	"copilot": {Surface: SurfaceSearch, nameFormat: "%s-%s", nameLimit: 64, keepLoaded: entryObject{{"deferTools", "never"}},
		Searches:    Fact{"only with some models, from about 30 tools", "docs.github.com, Copilot CLI, tool search; github/copilot-cli#4588", looked},
		Prefix:      Fact{"`ENTRY-TOOL`; `ENTRY(TOOL)` in rules", "third parties", collected},
		Names:       Fact{"128 or 64, by model, of `A-Z a-z 0-9 _ -`", "github/copilot-cli#1879", looked},
		WholeServer: Fact{"only the flag `--allow-tool ENTRY`", "vendor's pages", collected},
		KeepLoaded:  Fact{"`\"deferTools\": \"never\"` in the entry, from 1.0.63", "docs.github.com, Copilot CLI, tool search", looked}},
	"gemini": {Surface: SurfaceSearch, nameFormat: "mcp_%s_%s", nameLimit: 64,
		Searches:    Fact{noSearch, notFound, collected},
		Prefix:      Fact{"`mcp_ENTRY_TOOL`; no `_` in ENTRY", "vendor's page on policies", collected},
		Names:       Fact{"64; a longer name is cut", "zuplo.com/learn/mcp/compatibility/clients/gemini-cli", looked},
		WholeServer: Fact{"a policy with `mcpName` and `toolName = \"*\"`", "vendor's page on policies; source of 0.61", collected},
		KeepLoaded:  Fact{Text: asBefore}},
	"opencode": {Surface: SurfaceSearch, nameFormat: "%s_%s", nameLimit: 64,
		Searches:    Fact{"opencode 2: it calls tools from code; opencode 1: no", "anomalyco/opencode#34368, #49576", looked},
		Prefix:      Fact{"`ENTRY_TOOL`", "vendor's page on permissions", collected},
		Names:       Fact{"64 with some models, which reject a longer name", "anomalyco/opencode#24871", looked},
		WholeServer: Fact{"`\"ENTRY_*\"` under `permission`", "vendor's page on permissions", collected},
		KeepLoaded:  Fact{"`\"codemode\": false` in the entry of opencode 2", "anomalyco/opencode#49576", looked}},
	"goose": {Surface: SurfaceSearch, nameFormat: "%s__%s", nameLimit: 64,
		Searches:    Fact{noSearch, notFound, collected},
		Prefix:      Fact{"`ENTRY__TOOL`", "source", collected},
		Names:       unknownFact,
		WholeServer: Fact{noWholeEntry + ": its lists name single tools", "source", collected},
		KeepLoaded:  Fact{Text: asBefore}},
	"vscode": {Surface: SurfaceSearch, nameFormat: "mcp_%s_%s", nameLimit: 64,
		Searches:    Fact{noSearch, notFound, collected},
		Prefix:      Fact{"`mcp_ENTRY_TOOL`", "third parties", collected},
		Names:       Fact{"64; a longer name is cut, and dropped if it is not unique", "microsoft/vscode#338895", collected},
		WholeServer: Fact{noWholeEntry + ": only its dialog does", "vendor's pages", collected},
		KeepLoaded:  Fact{Text: asBefore}},
	"zed": withoutSearch("mcp:%s:%s", 64, Fact{"`mcp:ENTRY:TOOL` in rules", "vendor's page on permissions", collected},
		Fact{"64; a longer name is cut", "source, agent/src/thread.rs", looked}, Fact{noWholeEntry + ": its settings name single tools", "vendor's page on permissions", collected}),
	"kiro": withoutSearch("%s%s", 0, unknownFact, unknownFact, Fact{"`\"autoApprove\": [\"*\"]` in the entry", "vendor's pages", collected}),
	"cline": withoutSearch("%s%s", 0, Fact{"none: it names entry and tool separately", "source", collected}, unknownFact,
		Fact{noWholeEntry + " evidence: its list names single tools", "source", collected}),
	"claude-desktop": withoutSearch("", 0, unknownFact, Fact{"64 of `A-Z a-z 0-9 _ -`", "zenn.dev/kmiura55/articles/fastapi-mcp-tool-name", looked}, Fact{noWholeEntry + ": only its settings do", "vendor's pages", collected}),
	"windsurf":       withoutSearch("", 0, unknownFact, unknownFact, Fact{noWholeEntry + ": only its dialog does", "third parties", collected}),
	"lmstudio":       withoutSearch("", 0, unknownFact, unknownFact, Fact{noWholeEntry + ": only its dialog does", "third parties", collected}),
	"junie":          withoutSearch("", 0, unknownFact, unknownFact, Fact{noWholeEntry + ": only its settings do", "vendor's pages", collected}),
}

// withoutSearch returns the facts of a client that is not known to search by itself.
func withoutSearch(format string, limit int, prefix, names, whole Fact) SurfaceFacts {
	return SurfaceFacts{Surface: SurfaceSearch, nameFormat: format, nameLimit: limit,
		Searches: Fact{noSearch, notFound, collected}, Prefix: prefix, Names: names, WholeServer: whole, KeepLoaded: Fact{Text: asBefore}}
}

// SurfaceTableMarkdown returns the table of all clients for the guide.
func SurfaceTableMarkdown() string {
	var b strings.Builder
	b.WriteString("| client | `auto` writes | searches by itself | names for the model | accepted names | permits a whole entry | keeps tools loaded |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	for _, c := range allClients {
		f := c.SurfaceFacts()
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", c.Name, f.Surface, f.Searches.markdown(), f.Prefix.markdown(), f.Names.markdown(), f.WholeServer.markdown(), f.KeepLoaded.markdown())
	}
	return b.String()
}

// markdown returns the table cell for a fact.
func (f Fact) markdown() string {
	if f.Evidence == "" {
		return f.Text
	}
	return f.Text + " (" + f.Evidence + ", " + f.Date + ")"
}
