package permission

import (
	"cmp"
	"slices"

	"mcpproxy/internal/clients"
)

// opencodeVerdicts maps opencode's values to verdicts.
var opencodeVerdicts = map[string]Verdict{"allow": Runs, "ask": Asks, "deny": Denied}

// opencodeRule is a rule that matches the tool.
type opencodeRule struct {
	verdict Verdict
	rule    Rule
}

// opencodeDecision evaluates opencode: the last matching rule counts. Rules of an agent come after general rules. The
// section tools comes before both.
func opencodeDecision(q toolQuery) toolDecision {
	if off := disabledInEntryDecision(q); off.verdict != "" {
		return off
	}
	name := sanitizeName(q.server) + "_" + sanitizeName(q.tool.Name)
	settings := q.docs.withKind(fileServers)
	for _, d := range settings.highestFirst() {
		if native := d.Value.Get("permissions"); native.IsList() {
			return toolDecision{Unknown, d.newRule(native, "permissions"), "MCPProxy does not read the list of opencode 2: use the section permission, which opencode 2 reads too"}
		}
	}
	last := opencodeRule{Runs, Rule{Text: "no rule applies to the tool: opencode runs it"}}
	for _, section := range []string{"tools", "permission"} {
		for _, r := range mergeOpencodeSection(settings, section) {
			if matchGlob(r.key, name) {
				last = r.opencodeRule
			}
		}
	}
	said := toolDecision{last.verdict, last.rule, ""}
	if last.verdict == "" {
		said.verdict, said.why = Unknown, "the value is not one that is known here"
	}
	for _, d := range settings {
		if agents := d.Value.Get("agent"); agents.IsObject() && said.why == "" {
			said.why = "an agent with its own permissions can differ"
		}
	}
	return said
}

// opencodePatternRule is a rule with its pattern.
type opencodePatternRule struct {
	key string
	opencodeRule
}

// mergeOpencodeSection merges a section of all files as opencode does: a key keeps its first position and its last
// value.
func mergeOpencodeSection(settings clientDocs, section string) []opencodePatternRule {
	var merged []opencodePatternRule
	for _, d := range settings {
		tree := d.Value.Get(section)
		if word := tree.Text(); word != "" {
			merged = []opencodePatternRule{{"*", opencodeRule{opencodeVerdicts[word], d.newRule(tree, section+": "+word)}}}
		}
		for key, value := range tree.Members() {
			r := opencodePatternRule{key, parseOpencodeRule(d, key, value)}
			if i := slices.IndexFunc(merged, func(k opencodePatternRule) bool { return k.key == key }); i >= 0 {
				merged[i] = r
			} else {
				merged = append(merged, r)
			}
		}
	}
	return merged
}

// parseOpencodeRule parses a value: a string, a boolean, or an object by argument pattern. Of such an object, only *
// applies to MCP tools.
func parseOpencodeRule(d clientDoc, key string, value clients.ParsedValue) opencodeRule {
	if on, ok := value.Bool(); ok {
		return opencodeRule{map[bool]Verdict{true: Runs, false: Denied}[on], d.newRule(value, key)}
	}
	word := value
	for pattern, inner := range value.Members() {
		if pattern == "*" {
			word = inner
		}
	}
	return opencodeRule{opencodeVerdicts[word.Text()], d.newRule(word, key+": "+word.Text())}
}

func opencodeEdits(rules []wantedRule) []fileEdit {
	var edits []fileEdit
	for _, r := range rules {
		tool := r.tool
		if tool != anyTool {
			tool = sanitizeName(tool)
		}
		word := map[Verdict]string{Runs: "allow", Asks: "ask"}[r.wanted]
		edits = append(edits, fileEdit{op: opSetLast, path: []string{"permission", sanitizeName(r.entry) + "_" + tool}, text: word, unless: "deny"})
	}
	return edits
}

// zedVerdicts maps Zed's values to verdicts.
var zedVerdicts = map[string]Verdict{"allow": Runs, "confirm": Asks, "deny": Denied}

// zedDecision evaluates Zed: the tool's default before the general default. Patterns apply only to Zed's own tools.
func zedDecision(q toolQuery) toolDecision {
	if off := disabledInEntryDecision(q); off.verdict != "" {
		return off
	}
	settings := q.docs.withKind(fileServers)
	d, at := settings.strongestValue("agent", "tool_permissions", "tools", "mcp:"+q.server+":"+q.tool.Name, "default")
	text := "mcp:" + q.server + ":" + q.tool.Name + " "
	if !at.Exists() {
		d, at = settings.strongestValue("agent", "tool_permissions", "default")
		text = "tool_permissions.default "
	}
	if at.Exists() {
		said := toolDecision{zedVerdicts[at.Text()], d.newRule(at, text+at.Text()), ""}
		if said.verdict == "" {
			said.verdict, said.why = Unknown, "the value is not one that is known here"
		}
		return said
	}
	if d, old := settings.strongestValue("agent", "always_allow_tool_actions"); old.Exists() {
		if all, _ := old.Bool(); all {
			return toolDecision{Unknown, d.newRule(old, "always_allow_tool_actions: true"), "Zed before 0.224 runs every call, later versions ask"}
		}
	}
	return toolDecision{Asks, Rule{Text: "no setting applies to the tool: Zed asks"}, ""}
}

func zedEdits(rules []wantedRule) []fileEdit {
	var edits []fileEdit
	for _, r := range rules {
		word := map[Verdict]string{Runs: "allow", Asks: "confirm"}[r.wanted]
		edits = append(edits, fileEdit{op: opSet, path: []string{"agent", "tool_permissions", "tools", "mcp:" + r.entry + ":" + r.tool, "default"}, text: word, unless: "deny"})
	}
	return edits
}

// vscodeDecision evaluates VS Code: the hint decides, unless everything is approved.
func vscodeDecision(q toolQuery) toolDecision {
	const key = "chat.tools.global.autoApprove"
	if d, at := q.docs.withKind(fileRules).strongestValue(key); at.Exists() {
		if all, _ := at.Bool(); all {
			return toolDecision{Runs, d.newRule(at, key+": true"), "everything is approved"}
		}
	}
	if q.tool.recommendedVerdict() == Runs {
		return toolDecision{Runs, Rule{Text: "the hint readOnlyHint of the tool"}, "according to third parties; the vendor does not document it"}
	}
	return toolDecision{Asks, Rule{Text: "VS Code asks for tools that are not marked read-only"}, "unless the user allowed it permanently in the dialog, which no file records"}
}

// copilotDecision evaluates Copilot: its own answers to the user are in no documented file.
func copilotDecision(q toolQuery) toolDecision {
	d, entry := q.docs.serverEntry(q.server)
	hidden := denyUnlisted(d, entry.Get("tools"), "tools", "tool", func(s string) bool { return s == "*" || s == q.tool.Name })
	return cmp.Or(hidden, toolDecision{Unknown, Rule{Text: "answers in the client's own dialog, and its flags"}, "no file says it"})
}

// unknownUnlessDenied evaluates clients that ask until a user chooses "always" in a dialog. That choice is in no
// documented file.
func unknownUnlessDenied(q toolQuery) toolDecision {
	said := approvedListDecision(q)
	if said.verdict == Denied {
		return said
	}
	return toolDecision{Unknown, Rule{Text: "answers in the client's own dialog"}, "no file says it"}
}
