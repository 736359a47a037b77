package permission

import (
	"fmt"
	"strings"
)

// cursorDecision evaluates Cursor: the merged list of the files; if there is one, that of
// the settings does not count. The Run Mode is in no file.
func cursorDecision(q toolQuery) decision {
	listed := false
	var empty Rule
	for _, d := range q.docs.ofKind(fileRules) {
		list := d.Tree.Get("mcpAllowlist")
		if !list.IsList() {
			continue
		}
		listed, empty = true, d.rule(list, "mcpAllowlist does not have the tool")
		at, found := firstMatch(list, func(rule string) bool { return cursorMatches(rule, q.server, q.tool.Name) })
		if found {
			return decision{Runs, d.rule(at, "mcpAllowlist "+at.Text()), "in the Run Modes Allowlist and Auto-review"}
		}
	}
	if !listed {
		return decision{Unknown, Rule{Text: "no file has mcpAllowlist: the list in Cursor's settings decides"}, ""}
	}
	return decision{Asks, empty, "in the Run Mode Allowlist; in Auto-review a classifier may pass it, Run Everything passes it"}
}

// cursorMatches reports whether a server:tool pattern matches the tool.
func cursorMatches(rule, server, name string) bool {
	ruleServer, ruleTool, ok := strings.Cut(rule, ":")
	return ok && matchStar(ruleServer, server) && matchStar(ruleTool, name)
}

// cursorEdits writes patterns with a leading *, because Cursor may add a prefix to the
// server's id.
func cursorEdits(server string, tools []Tool) []edit {
	var edits []edit
	for _, name := range namesWithVerdict(tools, Asks) {
		for _, form := range []string{server + ":" + name, "*" + server + ":" + name} {
			edits = append(edits, edit{op: opDrop, path: []string{"mcpAllowlist"}, text: form})
		}
	}
	for _, name := range namesWithVerdict(tools, Runs) {
		edits = append(edits, edit{op: opAppend, path: []string{"mcpAllowlist"}, text: "*" + server + ":" + name})
	}
	return edits
}

// disabledInEntry is the decision if the server's entry disables it.
func disabledInEntry(q toolQuery) decision {
	d, entry := q.docs.entry(q.server)
	for key, off := range map[string]bool{"enabled": false, "disabled": true} {
		if is, ok := entry.Get(key).Bool(); ok && is == off {
			return decision{Denied, d.rule(entry.Get(key), fmt.Sprintf("%s: %v", key, is)), "the server is switched off"}
		}
	}
	return decision{}
}

// approvedListDecision is for clients with a list of approved tools in the server's
// entry.
func approvedListDecision(q toolQuery) decision {
	if off := disabledInEntry(q); off.verdict != "" {
		return off
	}
	d, entry := q.docs.entry(q.server)
	for _, key := range []string{"disabledTools", "excludeTools"} {
		if at, found := firstMatch(entry.Get(key), equals(q.tool.Name)); found {
			return decision{Denied, d.rule(at, key+" "+q.tool.Name), ""}
		}
	}
	at, found := firstMatch(entry.Get("autoApprove"), func(s string) bool { return s == q.tool.Name || s == "*" })
	if found {
		return decision{Runs, d.rule(at, "autoApprove "+at.Text()), ""}
	}
	if list := entry.Get("autoApprove"); list.Exists() {
		return decision{Asks, d.rule(list, "autoApprove does not have the tool"), ""}
	}
	return decision{Asks, Rule{Text: "the server's entry has no autoApprove: the client asks"}, ""}
}

// clineDecision evaluates Cline: it only uses the list if MCP servers are enabled in its
// Auto-approve menu.
func clineDecision(q toolQuery) decision {
	said := approvedListDecision(q)
	_, entry := q.docs.entry(q.server)
	at, found := firstMatch(entry.Get("alwaysAllow"), equals(q.tool.Name))
	switch {
	case said.verdict == Runs:
		said.why = "while Auto-approve → Use MCP servers is ticked; else it asks"
	case said.verdict == Asks && found:
		d, _ := q.docs.entry(q.server)
		return decision{Unknown, d.rule(at, "alwaysAllow "+q.tool.Name), "the vendor's pages name alwaysAllow, its source reads autoApprove"}
	}
	return said
}

func approvedListEdits(at ...string) func(string, []Tool) []edit {
	return func(server string, tools []Tool) []edit {
		path := append(append([]string{}, at...), server, "autoApprove")
		var edits []edit
		for _, name := range namesWithVerdict(tools, Asks) {
			edits = append(edits, edit{op: opDrop, path: path, text: name})
		}
		for _, name := range namesWithVerdict(tools, Runs) {
			edits = append(edits, edit{op: opAppend, path: path, text: name})
		}
		return edits
	}
}

// gooseDecision evaluates Goose: the mode first, then the user's lists, then the hints.
func gooseDecision(q toolQuery) decision {
	if off := disabledInEntry(q); off.verdict != "" {
		return off
	}
	d, entry := q.docs.entry(q.server)
	if list := entry.Get("available_tools"); len(list.Texts()) > 0 {
		if _, found := firstMatch(list, equals(q.tool.Name)); !found {
			return decision{Denied, d.rule(list, "available_tools does not have the tool"), ""}
		}
	}
	mode := Rule{Text: "GOOSE_MODE is not set: Goose takes auto"}
	word := "auto"
	if d, at := q.docs.ofKind(fileServers).strongest("GOOSE_MODE"); at.Exists() {
		word, mode = at.Text(), d.rule(at, "GOOSE_MODE: "+at.Text())
	}
	switch word {
	case "auto":
		return decision{Runs, mode, "the mode auto asks for nothing"}
	case "chat":
		return decision{Denied, mode, "the mode chat calls no tools"}
	case "approve", "smart_approve":
		return gooseLists(q, mode)
	}
	return decision{Unknown, mode, "the mode is not one that is known here"}
}

// gooseLists returns the decision of the user's lists, else of the hints.
func gooseLists(q toolQuery, mode Rule) decision {
	for _, list := range [...]struct {
		name    string
		verdict Verdict
	}{{"never_allow", Denied}, {"always_allow", Runs}, {"ask_before", Asks}} {
		d, tree := q.docs.ofKind(fileRules).strongest("user", list.name)
		if at, found := firstMatch(tree, equals(q.server+"__"+q.tool.Name)); found {
			return decision{list.verdict, d.rule(at, list.name+" "+at.Text()), ""}
		}
	}
	if q.tool.Wanted() == Runs {
		return decision{Runs, mode, "by the hint readOnlyHint of the tool"}
	}
	return decision{Asks, mode, "by the hint readOnlyHint of the tool"}
}

func gooseEdits(server string, tools []Tool) []edit {
	var edits []edit
	list := func(op operation, name, tool string) {
		edits = append(edits, edit{op: op, path: []string{"user", name}, text: server + "__" + tool})
	}
	for _, name := range namesWithVerdict(tools, Runs) {
		list(opAppend, "always_allow", name)
	}
	for _, name := range namesWithVerdict(tools, Asks) {
		list(opDrop, "always_allow", name)
		list(opAppend, "ask_before", name)
	}
	return append(edits, edit{op: opEnsureList, path: []string{"user", "never_allow"}})
}
