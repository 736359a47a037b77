package permission

import (
	"cmp"
	"fmt"
	"strings"
)

// cursorDecision evaluates Cursor: the merged list of the files. If there is one, the list in the settings does not
// count. No file contains the Run Mode.
func cursorDecision(q toolQuery) toolDecision {
	listed := false
	var empty Rule
	for _, d := range q.docs.withKind(fileRules) {
		list := d.Value.Get("mcpAllowlist")
		if !list.IsList() {
			continue
		}
		listed, empty = true, d.newRule(list, "mcpAllowlist does not contain the tool")
		at, found := firstMatch(list, func(rule string) bool { return cursorPatternMatches(rule, q.server, q.tool.Name) })
		if found {
			return toolDecision{Runs, d.newRule(at, "mcpAllowlist "+at.Text()), "in the Run Modes Allowlist and Auto-review"}
		}
	}
	if !listed {
		return toolDecision{Unknown, Rule{Text: "no file has mcpAllowlist: the list in Cursor's settings decides"}, ""}
	}
	return toolDecision{Asks, empty, "in the Run Mode Allowlist; in Auto-review a classifier may pass it, Run Everything passes it"}
}

// cursorPatternMatches reports whether a server:tool pattern matches the tool.
func cursorPatternMatches(rule, server, name string) bool {
	ruleServer, ruleTool, ok := strings.Cut(rule, ":")
	return ok && matchStar(ruleServer, server) && matchStar(ruleTool, name)
}

// cursorEdits writes patterns with a leading *, because Cursor may add a prefix to the server's id. For an entry with
// all tools it only removes the permission, because a new list would replace the list of the settings without any
// benefit.
func cursorEdits(rules []wantedRule) []fileEdit {
	var drops, appends []fileEdit
	for _, r := range rules {
		name := r.entry + ":" + r.tool
		if r.wanted == Runs {
			appends = append(appends, fileEdit{op: opAppend, path: []string{"mcpAllowlist"}, text: "*" + name})
			continue
		}
		for _, form := range []string{name, "*" + name} {
			drops = append(drops, fileEdit{op: opDrop, path: []string{"mcpAllowlist"}, text: form})
		}
	}
	return append(drops, appends...)
}

// disabledInEntryDecision returns the decision if the server's entry disables the server.
func disabledInEntryDecision(q toolQuery) toolDecision {
	d, entry := q.docs.serverEntry(q.server)
	for key, off := range map[string]bool{"enabled": false, "disabled": true} {
		if is, ok := entry.Get(key).Bool(); ok && is == off {
			return toolDecision{Denied, d.newRule(entry.Get(key), fmt.Sprintf("%s: %v", key, is)), "the server is disabled"}
		}
	}
	return toolDecision{}
}

// approvedListDecision evaluates clients with a list of approved tools in the server's entry.
func approvedListDecision(q toolQuery) toolDecision {
	d, entry := q.docs.serverEntry(q.server)
	list := entry.Get("autoApprove")
	said := toolDecision{Asks, Rule{Text: "the server's entry has no autoApprove: the client asks"}, ""}
	if at, found := firstMatch(list, func(s string) bool { return s == q.tool.Name || s == "*" }); found {
		said = toolDecision{Runs, d.newRule(at, "autoApprove "+at.Text()), ""}
	} else if list.Exists() {
		said = toolDecision{Asks, d.newRule(list, "autoApprove does not contain the tool"), ""}
	}
	return cmp.Or(
		disabledInEntryDecision(q),
		denyListed(d, entry.Get("disabledTools"), "disabledTools", equalTo(q.tool.Name)),
		denyListed(d, entry.Get("excludeTools"), "excludeTools", equalTo(q.tool.Name)),
		said,
	)
}

// clineDecision evaluates Cline: it only uses the list if MCP servers are enabled in its
// Auto-approve menu.
func clineDecision(q toolQuery) toolDecision {
	said := approvedListDecision(q)
	_, entry := q.docs.serverEntry(q.server)
	at, found := firstMatch(entry.Get("alwaysAllow"), equalTo(q.tool.Name))
	switch {
	case said.verdict == Runs:
		said.why = "if Auto-approve → Use MCP servers is ticked; otherwise it asks"
	case said.verdict == Asks && found:
		d, _ := q.docs.serverEntry(q.server)
		return toolDecision{Unknown, d.newRule(at, "alwaysAllow "+q.tool.Name), "the vendor's pages name alwaysAllow, but its source reads autoApprove"}
	}
	return said
}

// approvedListEdits adds the tools that should run to the list in their entry, and removes all others.
func approvedListEdits(rules []wantedRule) []fileEdit {
	var drops, appends []fileEdit
	for _, r := range rules {
		one := fileEdit{op: opDrop, path: []string{"mcpServers", r.entry, "autoApprove"}, text: r.tool}
		if r.wanted == Runs {
			one.op = opAppend
			appends = append(appends, one)
			continue
		}
		drops = append(drops, one)
	}
	return append(drops, appends...)
}

// gooseDecision evaluates Goose: the mode first, then the user's lists, then the hints.
func gooseDecision(q toolQuery) toolDecision {
	d, entry := q.docs.serverEntry(q.server)
	off := disabledInEntryDecision(q)
	if list := entry.Get("available_tools"); len(list.StringItems()) > 0 { // an empty list limits nothing
		off = cmp.Or(off, denyUnlisted(d, list, "available_tools", "tool", equalTo(q.tool.Name)))
	}
	if off.verdict != "" {
		return off
	}
	mode := Rule{Text: "GOOSE_MODE is not set: the mode is auto"}
	word := "auto"
	if d, at := q.docs.withKind(fileServers).strongestValue("GOOSE_MODE"); at.Exists() {
		word, mode = at.Text(), d.newRule(at, "GOOSE_MODE: "+at.Text())
	}
	switch word {
	case "auto":
		return toolDecision{Runs, mode, "the mode auto asks for nothing"}
	case "chat":
		return toolDecision{Denied, mode, "the mode chat calls no tools"}
	case "approve", "smart_approve":
		return gooseListDecision(q, mode)
	}
	return toolDecision{Unknown, mode, "the mode is not one that is known here"}
}

// gooseListDecision returns the decision by the user's lists, or else by the hints.
func gooseListDecision(q toolQuery, mode Rule) toolDecision {
	for _, list := range [...]struct {
		name    string
		verdict Verdict
	}{{"never_allow", Denied}, {"always_allow", Runs}, {"ask_before", Asks}} {
		d, tree := q.docs.withKind(fileRules).strongestValue("user", list.name)
		if at, found := firstMatch(tree, equalTo(q.server+"__"+q.tool.Name)); found {
			return toolDecision{list.verdict, d.newRule(at, list.name+" "+at.Text()), ""}
		}
	}
	if q.tool.recommendedVerdict() == Runs {
		return toolDecision{Runs, mode, "by the hint readOnlyHint of the tool"}
	}
	return toolDecision{Asks, mode, "by the hint readOnlyHint of the tool"}
}

func gooseEdits(rules []wantedRule) []fileEdit {
	var runs, asks []fileEdit
	edit := func(op editOperation, list string, r wantedRule) fileEdit {
		return fileEdit{op: op, path: []string{"user", list}, text: r.entry + "__" + r.tool}
	}
	for _, r := range rules {
		if r.wanted == Runs {
			runs = append(runs, edit(opAppend, "always_allow", r))
			continue
		}
		asks = append(asks, edit(opDrop, "always_allow", r), edit(opAppend, "ask_before", r))
	}
	return append(append(runs, asks...), fileEdit{op: opEnsureList, path: []string{"user", "never_allow"}})
}
