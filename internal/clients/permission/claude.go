package permission

import (
	"mcpproxy/internal/clients"
	"slices"
	"strings"
)

// claudeLists are the lists of rules, highest precedence first.
var claudeLists = [...]struct {
	name    string
	verdict Verdict
}{{"deny", Denied}, {"ask", Asks}, {"allow", Runs}}

// claudeDecision evaluates Claude Code: deny before ask before allow, from any file, then the mode. The mode is
// defaultMode unless --permission-mode or Shift+Tab sets another one.
func claudeDecision(q toolQuery) toolDecision {
	if off := claudeDisabledDecision(q); off.verdict != "" {
		return off
	}
	settings := q.docs.withKind(fileRules)
	mode := readClaudeMode(settings)
	for _, list := range claudeLists {
		for _, d := range effectiveClaudeSettings(settings).highestFirst() {
			at, found := firstMatch(d.Value.Get("permissions", list.name), func(rule string) bool {
				return claudeRuleMatches(rule, q.server, q.tool.Name, list.name == "allow")
			})
			if found {
				said := toolDecision{list.verdict, d.newRule(at, list.name+" "+at.Text()), ""}
				return mode.adjustDecision(said, q.tool)
			}
		}
	}
	return mode.decisionWithoutRule(q.tool)
}

// claudeDisabledDecision returns the decision if Claude Code does not connect to the server: it is disabled for the
// project, or not allowed by settings.
func claudeDisabledDecision(q toolQuery) toolDecision {
	d, off := q.docs.withKind(fileServers).strongestValue("projects", q.dir, "disabledMcpServers")
	if at, found := firstMatch(off, equalTo(q.server)); found {
		return toolDecision{Denied, d.newRule(at, "disabledMcpServers "+q.server), "the server is disabled in this project; to enable it, use /mcp in Claude Code"}
	}
	_, entry := q.docs.serverEntry(q.server)
	about := func(item clients.ParsedValue) bool {
		pattern := item.Get("serverUrl").Text()
		return item.Get("serverName").Text() == q.server || pattern != "" && matchStar(pattern, clients.EntryURL(entry))
	}
	missing, allowed := toolDecision{}, false
	for _, d := range q.docs.withKind(fileRules) {
		for _, item := range d.Value.Get("deniedMcpServers").Items() {
			if about(item) {
				return toolDecision{Denied, d.newRule(item, "deniedMcpServers "+q.server), "Claude Code does not connect the server"}
			}
		}
		if list := d.Value.Get("allowedMcpServers"); list.IsList() { // the lists of all files are merged
			allowed = allowed || slices.ContainsFunc(list.Items(), about)
			missing = toolDecision{Denied, d.newRule(list, "allowedMcpServers does not contain the server"), "Claude Code does not connect the server"}
		}
	}
	if allowed {
		return toolDecision{}
	}
	return missing
}

// effectiveClaudeSettings returns only the managed settings if they declare that no other settings count.
func effectiveClaudeSettings(all clientDocs) clientDocs {
	var managed clientDocs
	only := false
	for _, d := range all {
		if d.Scope == clients.Managed {
			managed = append(managed, d)
			said, _ := d.Value.Get("allowManagedPermissionRulesOnly").Bool()
			only = only || said
		}
	}
	if only {
		return managed
	}
	return all
}

// claudeRuleMatches reports whether a rule matches the tool. A rule with parentheses never matches an MCP tool. An
// allow rule with * before the end of the server's name does not match either.
func claudeRuleMatches(rule, server, name string, allows bool) bool {
	prefix := "mcp__" + sanitizeName(server)
	switch {
	case rule == prefix:
		return true
	case allows && !strings.HasPrefix(rule, prefix+"__"):
		return false
	}
	return matchStar(rule, prefix+"__"+name)
}

// claudeModeSetting is the permission mode in which Claude Code starts.
type claudeModeSetting struct {
	name string
	rule Rule
}

func readClaudeMode(settings clientDocs) claudeModeSetting {
	d, at := settings.strongestValue("permissions", "defaultMode")
	mode := claudeModeSetting{"default", Rule{Text: "no rule applies to the tool: Claude Code asks"}}
	if at.Exists() {
		mode = claudeModeSetting{at.Text(), d.newRule(at, "defaultMode "+at.Text())}
	}
	if mode.name == "bypassPermissions" {
		if d, at := settings.strongestValue("permissions", "disableBypassPermissionsMode"); at.Text() == "disable" {
			return claudeModeSetting{"default", d.newRule(at, "disableBypassPermissionsMode disable")}
		}
	}
	return mode
}

// adjustDecision returns the effect of a rule in the mode.
func (m claudeModeSetting) adjustDecision(said toolDecision, t ProxyTool) toolDecision {
	switch {
	case m.name == "dontAsk" && said.verdict == Asks:
		return toolDecision{Denied, m.rule, "the mode dontAsk denies calls that would ask"}
	case m.name == "plan" && said.verdict == Runs && t.recommendedVerdict() != Runs:
		return toolDecision{Asks, m.rule, "the plan mode asks for tools that are not marked read-only, despite allow rules"}
	}
	return said
}

// decisionWithoutRule returns the effect of the mode without a rule.
func (m claudeModeSetting) decisionWithoutRule(t ProxyTool) toolDecision {
	switch m.name {
	case "default", "acceptEdits", "manual", "plan":
		return toolDecision{Asks, m.rule, ""}
	case "bypassPermissions":
		return toolDecision{Runs, m.rule, "the mode asks only if a rule asks"}
	case "dontAsk":
		return toolDecision{Denied, m.rule, "the mode dontAsk denies calls that no rule allows"}
	case "auto":
		return toolDecision{Unknown, m.rule, "in the mode auto a classifier decides"}
	}
	return toolDecision{Unknown, m.rule, "the mode is not one that is known here"}
}

// claudeIgnoredRules returns rules that seem to apply to MCPProxy but are ignored.
func claudeIgnoredRules(q toolQuery) []Rule {
	var skipped []Rule
	for _, d := range q.docs.withKind(fileRules) {
		for _, list := range claudeLists {
			for _, at := range d.Value.Get("permissions", list.name).StringItems() {
				if claudeSkipsRule(at, q.server, list.name) {
					skipped = append(skipped, d.newRule(at, list.name+" "+at.Text()))
				}
			}
		}
	}
	return skipped
}

func claudeSkipsRule(at clients.ParsedValue, server, list string) bool {
	rule := at.Text()
	if before, _, found := strings.Cut(rule, "("); found {
		return claudeRuleMatches(before, server, "", false) || strings.HasPrefix(before, "mcp__"+sanitizeName(server)+"__")
	}
	return list == "allow" && strings.HasPrefix(rule, "mcp__") && strings.Contains(rule, "*") &&
		!strings.HasPrefix(rule, "mcp__"+sanitizeName(server)+"__") && matchStar(rule, "mcp__"+sanitizeName(server)+"__call_tool_read")
}

// claudeEdits adds the tools to the lists. Claude Code asks about the tools of an entry that no rule names.
func claudeEdits(rules []wantedRule) []fileEdit {
	var edits []fileEdit
	for _, r := range rules {
		if r.tool == anyTool && r.wanted == Asks {
			continue
		}
		list := map[Verdict]string{Runs: "allow", Asks: "ask"}[r.wanted]
		edits = append(edits, fileEdit{op: opAppend, path: []string{"permissions", list}, text: "mcp__" + sanitizeName(r.entry) + "__" + r.tool})
	}
	return edits
}
