package permission

import (
	"cmp"
	"mcpproxy/internal/clients"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/catalog/tool"
)

// geminiTiers contains the tiers of policies by scope. Workspace policies are read but have no effect at present.
var geminiTiers = map[clients.Scope]int{clients.Managed: 5, clients.User: 4}

// geminiRule is a policy rule that may match the tool.
type geminiRule struct {
	decision      string
	priority      float64
	rule          Rule
	partialReason string // the reason why it may not match a call of the tool
	catchAll      bool   // whether the file has a rule without toolName
}

// geminiDecision evaluates Gemini CLI: hidden tools, then a denying policy, then trust, then policies by priority. If
// nothing applies, Gemini CLI asks.
func geminiDecision(q toolQuery) toolDecision {
	if strings.Contains(q.server, "_") {
		return toolDecision{Unknown, Rule{Text: "the server's name has an underscore"}, "rules of such a server fail silently: give it another name"}
	}
	if d := geminiHiddenDecision(q); d.verdict != "" {
		return d
	}
	all := geminiRulesForTool(q)
	for _, r := range all {
		if r.catchAll {
			return toolDecision{Unknown, r.rule, `the documents let a rule do without toolName, release 0.61 refuses the whole file for it: write toolName = "*"`}
		}
	}
	denied := len(all) > 0 && all[0].decision == "deny" && all[0].partialReason == ""
	if d, entry := q.docs.serverEntry(q.server); !denied {
		if trust, _ := entry.Get("trust").Bool(); trust {
			return toolDecision{Runs, d.newRule(entry.Get("trust"), "trust: true"), "in a trusted folder, Gemini CLI does not ask about a trusted server"}
		}
	}
	for i, r := range all {
		if r.partialReason == "" {
			return geminiRuleDecision(r, all[:i])
		}
	}
	return geminiRuleDecision(geminiRule{decision: "ask_user", rule: Rule{Text: "no policy applies to the tool: Gemini CLI asks"}}, all)
}

// geminiRuleDecision returns the effect of a rule if the rules above it match only some of the calls.
func geminiRuleDecision(r geminiRule, above []geminiRule) toolDecision {
	for _, some := range above {
		if some.decision != r.decision {
			return toolDecision{Unknown, some.rule, some.partialReason}
		}
	}
	switch r.decision {
	case "allow":
		return toolDecision{Runs, r.rule, ""}
	case "deny":
		return toolDecision{Denied, r.rule, "the model does not see the tool"}
	case "ask_user":
		return toolDecision{Asks, r.rule, "without a terminal, asking means denying"}
	}
	return toolDecision{Unknown, r.rule, "the decision is not one that is known here"}
}

// geminiHiddenDecision returns the decision if the model does not see the tool.
func geminiHiddenDecision(q toolQuery) toolDecision {
	settings := q.docs.withKind(fileServers)
	excludedIn, excluded := settings.strongestValue("mcp", "excluded")
	allowedIn, allowed := settings.strongestValue("mcp", "allowed")
	d, entry := q.docs.serverEntry(q.server)
	named := func(s string) bool { return s == q.tool.Name || strings.HasPrefix(s, q.tool.Name+"(") }
	return cmp.Or(
		geminiDisabledDecision(q),
		denyListed(excludedIn, excluded, "mcp.excluded", equalTo(q.server)),
		denyUnlisted(allowedIn, allowed, "mcp.allowed", "server", equalTo(q.server)),
		denyListed(d, entry.Get("excludeTools"), "excludeTools", named),
		denyUnlisted(d, entry.Get("includeTools"), "includeTools", "tool", named),
	)
}

// geminiDisabledDecision returns the decision if Gemini CLI does not connect to the server: it is disabled, or the
// folder is untrusted.
func geminiDisabledDecision(q toolQuery) toolDecision {
	d, off := q.docs.withKind(fileSwitches).strongestValue(strings.ToLower(q.server), "enabled")
	if on, ok := off.Bool(); ok && !on {
		return toolDecision{Denied, d.newRule(off, "enabled: false"), "the server is disabled: `/mcp enable " + q.server + "` in Gemini CLI switches it on"}
	}
	if d, at := geminiFolderTrust(q.docs, q.dir); at.Text() == "DO_NOT_TRUST" {
		return toolDecision{Denied, d.newRule(at, "DO_NOT_TRUST"), "Gemini CLI uses no servers in an untrusted folder"}
	}
	return toolDecision{}
}

// geminiFolderTrust returns the user's answer about the trust in a folder. The longest matching path decides.
func geminiFolderTrust(all clientDocs, dir string) (which clientDoc, answer clients.ParsedValue) {
	longest := -1
	for _, d := range all.withKind(fileTrustedFolders) {
		for path, at := range d.Value.Members() {
			trusted := path
			if at.Text() == "TRUST_PARENT" {
				trusted = filepath.Dir(path)
			}
			if len(path) > longest && isSameOrBelow(dir, trusted) {
				which, answer, longest = d, at, len(path)
			}
		}
	}
	return which, answer
}

// geminiFolderTrustNotes adds a note if the user has not answered yet, because the client then lists the server as
// disabled.
func geminiFolderTrustNotes(all clientDocs, dir string) []string {
	_, on := all.withKind(fileServers).strongestValue("security", "folderTrust", "enabled")
	if _, at := geminiFolderTrust(all, dir); at.Exists() || dir == "" {
		return nil
	}
	if is, ok := on.Bool(); ok && !is {
		return nil
	}
	return []string{"Gemini CLI has not asked yet whether to trust " + dir + ": until then `gemini mcp list` calls all servers disabled there. It asks when it is started there."}
}

var geminiRuleHeads = regexp.MustCompile(`(?m)^[ \t]*\[\[[ \t]*rule[ \t]*\]\]`)

// geminiRulesForTool returns the rules that apply to the tool, highest priority first.
func geminiRulesForTool(q toolQuery) []geminiRule {
	var all []geminiRule
	for _, d := range q.docs.withKind(fileRules) {
		if tier, counts := geminiTiers[d.Scope]; counts {
			all = append(all, geminiRulesInFile(d, tier, q)...)
		}
	}
	slices.SortStableFunc(all, func(a, b geminiRule) int { return cmp.Compare(b.priority, a.priority) })
	return all
}

// geminiRulesInFile returns the rules of a file that apply to the tool.
func geminiRulesInFile(d clientDoc, tier int, q toolQuery) []geminiRule {
	var all []geminiRule
	items := d.Value.Get("rule").Items()
	refused := slices.ContainsFunc(items, func(r clients.ParsedValue) bool {
		return !r.Get("toolName").Exists() && !r.Get("commandPrefix").Exists() && !r.Get("commandRegex").Exists()
	})
	heads := geminiRuleHeads.FindAllIndex(d.Text, -1)
	for i, item := range items {
		if !geminiRuleMayApply(item, q) {
			continue
		}
		number, _ := strconv.ParseFloat(item.Get("priority").Number(), 64)
		r := geminiRule{decision: item.Get("decision").Text(), priority: float64(tier) + number/1000, rule: Rule{Path: d.Path}, partialReason: geminiPartialMatchReason(item, q), catchAll: refused}
		r.rule.Text = "rule " + r.decision + ", priority " + strconv.FormatFloat(number, 'f', -1, 64)
		if len(heads) == len(items) {
			r.rule.Line = strings.Count(string(d.Text[:heads[i][1]]), "\n") + 1
		}
		all = append(all, r)
	}
	return all
}

// geminiPartialMatchReason returns the reason why a rule with the tool's name may not match a call.
func geminiPartialMatchReason(r clients.ParsedValue, q toolQuery) string {
	if r.Get("argsPattern").Exists() {
		return "the rule applies only to some arguments"
	}
	whole := func(s string) bool { return s == "*" || strings.HasPrefix(s, "mcp_"+q.server+"_") || s == "mcp_*" }
	if _, found := firstMatch(r.Get("toolName"), whole); found {
		return ""
	}
	if any := r.Get("mcpName"); any.Exists() && any.Text() != "*" {
		return ""
	}
	return "the documentation says that a tool of any server matches; release 0.61 does not match it"
}

// geminiRuleMayApply reports whether a rule can match calls of the tool in an interactive
// session in the default mode.
func geminiRuleMayApply(r clients.ParsedValue, q toolQuery) bool {
	if person, said := r.Get("interactive").Bool(); said && !person {
		return false
	}
	if r.Get("subagent").Exists() || r.Get("commandPrefix").Exists() || r.Get("commandRegex").Exists() {
		return false
	}
	if modes := r.Get("modes").StringItems(); len(modes) > 0 {
		if _, found := firstMatch(r.Get("modes"), equalTo("default")); !found {
			return false
		}
	}
	return geminiRuleNamesTool(r, q) && geminiHintsMatch(r.Get("toolAnnotations"), q.tool.Hints)
}

// geminiRuleNamesTool reports whether a rule names the tool: by server and name, or by the
// full name mcp_server_tool with wildcards.
func geminiRuleNamesTool(r clients.ParsedValue, q toolQuery) bool {
	server, names := r.Get("mcpName"), r.Get("toolName")
	if server.Exists() {
		if server.Text() != "*" && server.Text() != q.server {
			return false
		}
		_, found := firstMatch(names, func(s string) bool { return s == "*" || s == q.tool.Name })
		return found || !names.Exists()
	}
	_, found := firstMatch(names, func(s string) bool {
		return s == "*" || strings.HasPrefix(s, "mcp_") && matchStar(s, "mcp_"+q.server+"_"+q.tool.Name)
	})
	return found || !names.Exists() && r.Get("toolAnnotations").Exists()
}

// geminiHintsMatch reports whether the tool has all annotations that a rule requires.
func geminiHintsMatch(wanted clients.ParsedValue, h tool.Hints) bool {
	has := map[string]tool.TriBool{"readOnlyHint": h.ReadOnly, "destructiveHint": h.Destructive, "idempotentHint": h.Idempotent, "openWorldHint": h.OpenWorld}
	for name, value := range wanted.Members() {
		yes, ok := value.Bool()
		said := has[name]
		if !ok || said == tool.Unset || (said == tool.True) != yes {
			return false
		}
	}
	return true
}

// geminiEdits replaces MCPProxy's own policy file. Tools that read are allowed with a low priority. The client asks
// about the others with a high priority.
func geminiEdits(rules []wantedRule) []fileEdit {
	text := "# What MCPProxy recommends: reads run without asking, other calls ask. Written by `mcpproxy permissions gemini`.\n"
	for len(rules) > 0 {
		first := rules[0]
		var names []string
		rules = slices.DeleteFunc(slices.Clone(rules), func(r wantedRule) bool {
			same := r.entry == first.entry && r.wanted == first.wanted
			if same {
				names = append(names, strconv.Quote(r.tool))
			}
			return same
		})
		tools := "[" + strings.Join(names, ", ") + "]"
		if first.tool == anyTool {
			tools = names[0]
		}
		text += geminiRuleText(first.entry, tools, first.wanted)
	}
	return []fileEdit{{op: opReplaceFile, text: text}}
}

// geminiRuleText returns a rule about tools of a server.
func geminiRuleText(server, tools string, wanted Verdict) string {
	decision, priority := "allow", "200"
	if wanted == Asks {
		decision, priority = "ask_user", "300"
	}
	return "\n[[rule]]\nmcpName = " + strconv.Quote(server) + "\ntoolName = " + tools + "\ndecision = " + strconv.Quote(decision) + "\npriority = " + priority + "\n"
}
