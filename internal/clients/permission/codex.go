package permission

import (
	"cmp"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/clients"
)

// codexDecision evaluates Codex: the mode of the tool before the mode of the server, together with the hints. A call
// that would ask fails if approval_policy is never.
func codexDecision(q toolQuery) toolDecision {
	all := codexTrustedDocs(q.docs.withKind(fileServers), q.dir)
	if d, profile := all.strongestValue("profile"); profile.Exists() {
		return toolDecision{Unknown, d.newRule(profile, `profile = "`+profile.Text()+`"`), "Codex 0.169 rejects a file with profile, and earlier releases used the settings of the profile: use --profile, with a separate file"}
	}
	if d := codexHiddenDecision(all, q); d.verdict != "" {
		return d
	}
	key := []string{"mcp_servers", q.server}
	d, mode := all.strongestValue(append(key, "tools", q.tool.Name, "approval_mode")...)
	name := "tools." + q.tool.Name + ".approval_mode"
	if !mode.Exists() {
		d, mode = all.strongestValue(append(key, "default_tools_approval_mode")...)
		name = "default_tools_approval_mode"
	}
	said := toolDecision{rule: Rule{Text: `no mode is set: Codex takes "auto"`}}
	word := "auto"
	if mode.Exists() {
		word = mode.Text()
		said.rule = d.newRule(mode, name+` = "`+word+`"`)
	}
	said.verdict, said.why = codexModeVerdict(word, q.tool.Hints)
	if said.verdict == Asks {
		return applyCodexPolicy(all, said)
	}
	return said
}

// codexModeVerdict returns the effect of a mode for a tool with these hints.
func codexModeVerdict(mode string, h tool.Hints) (Verdict, string) {
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

// codexHiddenDecision returns the decision if the model does not see the tool.
func codexHiddenDecision(all clientDocs, q toolQuery) toolDecision {
	key := []string{"mcp_servers", q.server}
	if d, at := all.strongestValue(append(key, "enabled")...); at.Exists() {
		if on, ok := at.Bool(); ok && !on {
			return toolDecision{Denied, d.newRule(at, "enabled = false"), "the server is disabled"}
		}
	}
	enabledIn, enabled := all.strongestValue(append(key, "enabled_tools")...)
	disabledIn, disabled := all.strongestValue(append(key, "disabled_tools")...)
	return cmp.Or(
		denyUnlisted(enabledIn, enabled, "enabled_tools", "tool", equalTo(q.tool.Name)),
		denyListed(disabledIn, disabled, "disabled_tools", equalTo(q.tool.Name)),
	)
}

// applyCodexPolicy applies approval_policy to a decision that asks.
func applyCodexPolicy(all clientDocs, said toolDecision) toolDecision {
	d, policy := all.strongestValue("approval_policy")
	if answers, at := policy.Get("granular", "mcp_elicitations").Bool(); at && !answers {
		return toolDecision{Denied, d.newRule(policy, "approval_policy granular.mcp_elicitations = false"), "a call that would ask fails"}
	}
	if policy.Text() == "never" {
		rule := d.newRule(policy, `approval_policy = "never"`)
		if _, sandbox := all.strongestValue("sandbox_mode"); sandbox.Text() == "danger-full-access" {
			return toolDecision{Runs, rule, `with sandbox_mode "danger-full-access" nothing asks, except rejected calls`}
		}
		return toolDecision{Denied, rule, "a call that would ask fails"}
	}
	if d, who := all.strongestValue("approvals_reviewer"); who.Exists() && who.Text() != "user" {
		return toolDecision{Unknown, d.newRule(who, `approvals_reviewer = "`+who.Text()+`"`), "a model is asked instead of the user"}
	}
	return said
}

// codexTrustedDocs omits the files of projects that the user's file does not trust.
func codexTrustedDocs(all clientDocs, dir string) clientDocs {
	trusted := false
	for _, d := range all {
		if d.Scope != clients.User {
			continue
		}
		for project, says := range d.Value.Get("projects").Members() {
			trusted = trusted || isSameOrBelow(dir, project) && says.Get("trust_level").Text() == "trusted"
		}
	}
	var counted clientDocs
	for _, d := range all {
		if d.Scope != clients.Project || trusted {
			counted = append(counted, d)
		}
	}
	return counted
}

// codexEdits sets the mode of each tool or entry. An entry with tools of all lanes, or with tools that have their own
// modes, gets "writes": Codex asks about tools that are not marked read-only. Without a mode, Codex would run a tool
// whose hints declare that it neither destroys data nor reaches other systems.
func codexEdits(rules []wantedRule) []fileEdit {
	var edits []fileEdit
	set := func(mode string, path ...string) {
		edits = append(edits, fileEdit{op: opSet, path: append([]string{"mcp_servers"}, path...), text: mode})
	}
	for i, r := range rules {
		mode := map[Verdict]string{Runs: "approve", Asks: "prompt"}[r.wanted]
		switch {
		case r.mixed:
			set("writes", r.entry, "default_tools_approval_mode")
		case r.tool == anyTool:
			set(mode, r.entry, "default_tools_approval_mode")
		default:
			if i == 0 {
				set("writes", r.entry, "default_tools_approval_mode")
			}
			set(mode, r.entry, "tools", r.tool, "approval_mode")
		}
	}
	return edits
}
