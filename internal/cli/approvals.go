package cli

import (
	"context"
	"slices"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/ops"
)

// howToDecide replaces the column of commands where there is no room for it.
const howToDecide = "Look and decide: `mcpproxy upstream approve NAME` for a server, `mcpproxy tools approve NAME` for a tool, with --kind KIND for the rest."

func writeWaiting(p *printer, waiting ops.Waiting) {
	if len(waiting.Servers)+len(waiting.Tools)+len(waiting.Offers) == 0 {
		p.note("Nothing waits for you.")
		return
	}
	t := table{p: p, header: []string{"WHAT", "WAITS", "FINDINGS", "AGE", "LOOK AND DECIDE"}, right: map[int]bool{2: true},
		narrow: slices.Concat(leaveOut("AGE"), withNote(howToDecide, leaveOut("LOOK AND DECIDE")), shorten("WHAT", 24), shorten("WAITS", 10), leaveOut("FINDINGS"), shorten("WHAT", 8))}
	for _, s := range waiting.Servers {
		t.add(visibleLine(s.Name), "server: "+visibleLine(string(s.Stage)), findingCount(s.Findings), p.age(s.ProposedAt), "mcpproxy upstream approve "+quotedWord(s.Name))
	}
	for _, s := range waiting.Forgotten {
		findings := 0
		for _, w := range waitingDefinitions(waiting) {
			if w.definition.Server == s.Name {
				findings += len(w.Findings)
			}
		}
		t.add(visibleLine(s.Name), "server: approvals lost", findingCount(findings), "", "mcpproxy upstream approve "+quotedWord(s.Name))
	}
	for _, w := range waitingDefinitions(waiting) {
		if slices.ContainsFunc(waiting.Forgotten, func(s ops.Forgotten) bool { return s.Name == w.definition.Server }) {
			continue // approved with their server
		}
		t.add(visibleLine(w.definition.id()), w.definition.Kind.Label()+": "+visibleLine(string(w.Reason)), findingCount(len(w.Findings)), "", "mcpproxy tools approve "+w.definition.arg())
	}
	t.write()
	for _, warning := range waiting.Warnings {
		p.note("%s", oneLine(warning))
	}
	noteLeftOut(p, tool.KindTool, waiting)
	noteLeftOut(p, tool.KindPrompt, waiting)
}

// waitingTools completes the names of tools that wait for approval.
func waitingTools(ctx context.Context, c *api.Client, _ string) []string {
	waiting, _ := api.ListApprovals.Call(ctx, c, ops.PendingApprovalsQuery{})
	return mapStrings(waiting.Tools, func(t ops.WaitingTool) string { return t.Name })
}

// waitingServers completes the names of servers that wait for approval, or of all servers when none does.
func waitingServers(ctx context.Context, c *api.Client, typed string) []string {
	waiting, _ := api.ListApprovals.Call(ctx, c, ops.PendingApprovalsQuery{})
	if len(waiting.Servers) == 0 {
		return serverNames(ctx, c, typed)
	}
	return mapStrings(waiting.Servers, func(s ops.WaitingServer) string { return s.Name })
}
