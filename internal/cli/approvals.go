package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/ops"
)

// howToDecideHint replaces the column of commands if the terminal is too narrow for it.
const howToDecideHint = "Review and approve: `mcpproxy upstream approve NAME` for a server, `mcpproxy tools approve NAME` for a tool, with --kind KIND for the rest."

// newApprovalsCommand returns `approvals` and `approvals list`.
func newApprovalsCommand(r *invocation) commandSpec {
	return commandSpec{list: true, run: operationRunFunc(r, api.ListApprovals, zeroInput, writeWaitingApprovals), args: func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && cmd.HasSubCommands() {
			return unknownCommandError(cmd, args[0])
		}
		return checkMaxArguments(cmd, args, 0)
	}}
}

// waitingRow is a row of the list of pending approvals.
type waitingRow struct {
	name, reason string
	findings     int
	proposed     *time.Time
	command      string // the command that reviews and approves it
}

// toWaitingRows lists servers first. If the approvals of a server were lost, its definitions have no rows, because they
// are approved with the server.
func toWaitingRows(waiting ops.Waiting) (rows []waitingRow) {
	for _, s := range waiting.Servers {
		rows = append(rows, waitingRow{s.Name, "server: " + string(s.Stage), s.Findings, s.ProposedAt, "mcpproxy upstream approve " + shellQuoteWord(s.Name)})
	}
	forgotten := map[string]int{}
	for _, s := range waiting.Forgotten {
		forgotten[s.Name] = len(rows)
		rows = append(rows, waitingRow{s.Name, "server: approvals lost", 0, nil, "mcpproxy upstream approve " + shellQuoteWord(s.Name)})
	}
	for _, w := range toWaitingDefinitions(waiting) {
		if i, ok := forgotten[w.definition.Server]; ok {
			rows[i].findings += len(w.Findings)
			continue
		}
		rows = append(rows, waitingRow{w.definition.qualifiedName(), w.definition.Kind.Label() + ": " + string(w.Reason), len(w.Findings), nil, "mcpproxy tools approve " + w.definition.shellArguments()})
	}
	return rows
}

func writeWaitingApprovals(p *printer, waiting ops.Waiting) {
	list[waitingRow]{
		none: "Nothing awaits approval.",
		columns: []column[waitingRow]{
			{title: "ITEM", text: func(w waitingRow) string { return w.name }},
			{title: "REASON", text: func(w waitingRow) string { return w.reason }},
			{title: "FINDINGS", right: true, text: func(w waitingRow) string { return formatFindingCount(w.findings) }},
			{title: "AGE", cell: func(p *printer, w waitingRow) string { return p.formatAge(w.proposed) }},
			{title: "REVIEW AND APPROVE", cell: func(_ *printer, w waitingRow) string { return w.command }},
		},
		narrow: slices.Concat(columnHidingSteps("AGE"), addNoteToSteps(howToDecideHint, columnHidingSteps("REVIEW AND APPROVE")), columnTruncationStep("ITEM", 24), columnTruncationStep("REASON", 10), columnHidingSteps("FINDINGS"), columnTruncationStep("ITEM", 8)),
		exact:  true,
	}.write(p, toWaitingRows(waiting))
	for _, warning := range waiting.Warnings {
		p.addNote("%s", toOneLine(warning))
	}
	noteUnlistedDefinitions(p, tool.KindTool, waiting)
	noteUnlistedDefinitions(p, tool.KindPrompt, waiting)
}

// waitingServerNames returns the names of servers that wait for approval, for completion. If there are none, it returns
// the names of all servers.
func waitingServerNames(ctx context.Context, c *api.Client, typed string) []string {
	waiting, _ := api.ListApprovals.Call(ctx, c, ops.PendingApprovalsQuery{})
	if len(waiting.Servers) == 0 {
		return serverNames(ctx, c, typed)
	}
	return mapToStrings(waiting.Servers, func(s ops.WaitingServer) string { return s.Name })
}
