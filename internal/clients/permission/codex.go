package permission

import (
	"mcpproxy/internal/clients"

	"mcpproxy/internal/catalog/tool"
)

// codexDecision evaluates Codex: the mode of the tool before that of the server, with the
// hints; what would ask fails if approval_policy is never.
func codexDecision(q toolQuery) decision {
	all := codexTrusted(q.docs.ofKind(fileServers), q.dir)
	if d, profile := all.strongest("profile"); profile.Exists() {
		return decision{Unknown, d.rule(profile, `profile = "`+profile.Text()+`"`), "Codex 0.169 refuses the file with it, earlier releases took the settings of the profile: use --profile, with a file of its own"}
	}
	if d := codexHiddenTool(all, q); d.verdict != "" {
		return d
	}
	key := []string{"mcp_servers", q.server}
	d, mode := all.strongest(append(key, "tools", q.tool.Name, "approval_mode")...)
	name := "tools." + q.tool.Name + ".approval_mode"
	if !mode.Exists() {
		d, mode = all.strongest(append(key, "default_tools_approval_mode")...)
		name = "default_tools_approval_mode"
	}
	said := decision{rule: Rule{Text: `no mode is set: Codex takes "auto"`}}
	word := "auto"
	if mode.Exists() {
		word = mode.Text()
		said.rule = d.rule(mode, name+` = "`+word+`"`)
	}
	said.verdict, said.why = codexMode(word, q.tool.Hints)
	if said.verdict == Asks {
		return codexPolicy(all, said)
	}
	return said
}

// codexMode returns the effect of a mode for a tool with these hints.
func codexMode(mode string, h tool.Hints) (Verdict, string) {
	asks := false
	switch mode {
	case "approve":
		return Runs, "approve means: is approved"
	case "prompt":
		return Asks, ""
	case "writes":
		asks = h.ReadOnly != tool.True
	case "auto":
		asks = h.Destructive == tool.True ||
			h.ReadOnly != tool.True && (h.Destructive != tool.False || h.OpenWorld != tool.False)
	default:
		return Unknown, "Codex knows no such mode, and may refuse the file"
	}
	if asks {
		return Asks, "by the hints of the tool"
	}
	return Runs, "by the hints of the tool"
}

// codexHiddenTool is the decision if the model does not see the tool.
func codexHiddenTool(all docs, q toolQuery) decision {
	key := []string{"mcp_servers", q.server}
	if d, at := all.strongest(append(key, "enabled")...); at.Exists() {
		if on, ok := at.Bool(); ok && !on {
			return decision{Denied, d.rule(at, "enabled = false"), "the server is switched off"}
		}
	}
	if d, at := all.strongest(append(key, "enabled_tools")...); at.IsList() {
		if _, listed := firstMatch(at, equals(q.tool.Name)); !listed {
			return decision{Denied, d.rule(at, "enabled_tools"), "the list does not have the tool"}
		}
	}
	d, list := all.strongest(append(key, "disabled_tools")...)
	if at, listed := firstMatch(list, equals(q.tool.Name)); listed {
		return decision{Denied, d.rule(at, "disabled_tools "+q.tool.Name), ""}
	}
	return decision{}
}

// codexPolicy applies approval_policy to a decision that asks.
func codexPolicy(all docs, said decision) decision {
	d, policy := all.strongest("approval_policy")
	if answers, at := policy.Get("granular", "mcp_elicitations").Bool(); at && !answers {
		return decision{Denied, d.rule(policy, "approval_policy granular.mcp_elicitations = false"), "a call that would ask fails"}
	}
	if policy.Text() == "never" {
		rule := d.rule(policy, `approval_policy = "never"`)
		if _, sandbox := all.strongest("sandbox_mode"); sandbox.Text() == "danger-full-access" {
			return decision{Runs, rule, `with sandbox_mode "danger-full-access" nothing asks but what is refused`}
		}
		return decision{Denied, rule, "a call that would ask fails"}
	}
	if d, who := all.strongest("approvals_reviewer"); who.Exists() && who.Text() != "user" {
		return decision{Unknown, d.rule(who, `approvals_reviewer = "`+who.Text()+`"`), "not a person but a model is asked"}
	}
	return said
}

// codexTrusted removes the files of projects that the user's file does not trust.
func codexTrusted(all docs, dir string) docs {
	trusted := false
	for _, d := range all {
		if d.Scope != clients.User {
			continue
		}
		for project, says := range d.Tree.Get("projects").Members() {
			trusted = trusted || isWithin(dir, project) && says.Get("trust_level").Text() == "trusted"
		}
	}
	var counted docs
	for _, d := range all {
		if d.Scope != clients.Project || trusted {
			counted = append(counted, d)
		}
	}
	return counted
}

func codexEdits(server string, tools []Tool) []edit {
	edits := []edit{{op: opSet, path: []string{"mcp_servers", server, "default_tools_approval_mode"}, text: "writes"}}
	for _, t := range tools {
		mode := map[Verdict]string{Runs: "approve", Asks: "prompt"}[t.Wanted()]
		edits = append(edits, edit{op: opSet, path: []string{"mcp_servers", server, "tools", t.Name, "approval_mode"}, text: mode})
	}
	return edits
}
