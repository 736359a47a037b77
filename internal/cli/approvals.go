package cli

import (
	"context"
	"slices"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/ops"
)

// howToDecideHint replaces the column of commands in a narrow terminal.
const howToDecideHint = "Look and decide: `mcpproxy upstream approve NAME` for a server, `mcpproxy tools approve NAME` for a tool, with --kind KIND for the rest."

func writeWaitingApprovals(p *printer, waiting ops.Waiting) {
	if len(waiting.Servers)+len(waiting.Tools)+len(waiting.Offers) == 0 {
		p.addNote("Nothing waits for you.")
		return
	}
	t := table{p: p, header: []string{"WHAT", "WAITS", "FINDINGS", "AGE", "LOOK AND DECIDE"}, rightAligned: map[int]bool{2: true},
		narrowingSteps: slices.Concat(columnHidingSteps("AGE"), addNoteToSteps(howToDecideHint, columnHidingSteps("LOOK AND DECIDE")), columnTruncationStep("WHAT", 24), columnTruncationStep("WAITS", 10), columnHidingSteps("FINDINGS"), columnTruncationStep("WHAT", 8))}
	for _, s := range waiting.Servers {
		t.addRow(escapeInvisibleLine(s.Name), "server: "+escapeInvisibleLine(string(s.Stage)), formatFindingCount(s.Findings), p.formatAge(s.ProposedAt), "mcpproxy upstream approve "+shellQuoteWord(s.Name))
	}
	for _, s := range waiting.Forgotten {
		findings := 0
		for _, w := range toWaitingDefinitions(waiting) {
			if w.definition.Server == s.Name {
				findings += len(w.Findings)
			}
		}
		t.addRow(escapeInvisibleLine(s.Name), "server: approvals lost", formatFindingCount(findings), "", "mcpproxy upstream approve "+shellQuoteWord(s.Name))
	}
	for _, w := range toWaitingDefinitions(waiting) {
		if slices.ContainsFunc(waiting.Forgotten, func(s ops.Forgotten) bool { return s.Name == w.definition.Server }) {
			continue // approved with their server
		}
		t.addRow(escapeInvisibleLine(w.definition.qualifiedName()), w.definition.Kind.Label()+": "+escapeInvisibleLine(string(w.Reason)), formatFindingCount(len(w.Findings)), "", "mcpproxy tools approve "+w.definition.shellArguments())
	}
	t.write()
	for _, warning := range waiting.Warnings {
		p.addNote("%s", toOneLine(warning))
	}
	noteUnlistedDefinitions(p, tool.KindTool, waiting)
	noteUnlistedDefinitions(p, tool.KindPrompt, waiting)
}

// waitingToolNames returns the names of tools that wait for approval, for completion.
func waitingToolNames(ctx context.Context, c *api.Client, _ string) []string {
	waiting, _ := api.ListApprovals.Call(ctx, c, ops.PendingApprovalsQuery{})
	return mapToStrings(waiting.Tools, func(t ops.WaitingTool) string { return t.Name })
}

// waitingServerNames returns the names of servers that wait for approval, or of all servers when none does, for completion.
func waitingServerNames(ctx context.Context, c *api.Client, typed string) []string {
	waiting, _ := api.ListApprovals.Call(ctx, c, ops.PendingApprovalsQuery{})
	if len(waiting.Servers) == 0 {
		return serverNames(ctx, c, typed)
	}
	return mapToStrings(waiting.Servers, func(s ops.WaitingServer) string { return s.Name })
}
