package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
)

// maxStatsRows is the maximum number of rows of a table; -o json has no such limit.
const maxStatsRows = 20

func newToolsStatsCommand(r *invocation) commandSpec {
	var since string
	return commandSpec{flags: map[string]any{"since": &since}, run: operationRunFunc(r, api.GetToolStats, func(_ context.Context, _ *api.Client, _ []string) (in ops.StatsQuery, err error) {
		in.Since, err = r.parseTimeFlag("--since", since)
		return in, err
	}, writeToolStats)}
}

func writeToolStats(p *printer, s ops.ToolStats) {
	if s.Calls == 0 {
		p.addNote("No tool was called in this period.")
		return
	}
	var f fieldList
	f.add("Since", s.Since.In(p.timeZone).Format("2006-01-02 15:04"))
	f.add("Calls", fmt.Sprint(s.Calls))
	f.add("Searches", fmt.Sprintf("%d followed by calls", s.Searches))
	if s.Searches > 0 {
		f.add("Found at rank 1", formatFractionAsPercent(s.Recall1))
		f.add("Rank up to 3, 5, 10", strings.Join([]string{formatFractionAsPercent(s.Recall3), formatFractionAsPercent(s.Recall5), formatFractionAsPercent(s.Recall10)}, ", "))
		f.add("MRR", fmt.Sprintf("%.2f", s.MRR))
		f.add("Missed", fmt.Sprint(s.Missed))
	}
	f.add("Never called", fmt.Sprintf("%d callable tools", s.DeadAll))
	f.write(p)
	fmt.Fprintln(p)
	t := table{p: p, header: []string{"TOOL", "CALLS", "FOUND", "MISSED", "MEAN RANK", "LAST CALL"}, narrowingSteps: slices.Concat(
		columnHidingSteps("MEAN RANK", "MISSED"), columnTruncationStep("TOOL", 24), columnHidingSteps("FOUND", "LAST CALL"), columnTruncationStep("TOOL", 8))}
	for _, u := range s.Tools[:min(len(s.Tools), maxStatsRows)] {
		place := ""
		if u.Found > 0 {
			place = fmt.Sprintf("%.1f", u.Rank)
		}
		t.addRow(toOneLine(u.Name), fmt.Sprint(u.Calls), fmt.Sprint(u.Found), fmt.Sprint(u.Missed), place, u.Last.In(p.timeZone).Format("2006-01-02 15:04"))
	}
	t.write()
	if len(s.Dead) > 0 {
		fmt.Fprint(p, "\nNever called\n")
	}
	for _, name := range s.Dead[:min(len(s.Dead), maxStatsRows)] {
		p.writeWrapped("  ", toOneLine(name))
	}
	if s.Cut {
		p.addNote("Only the latest %d calls were read.", s.Calls)
	}
	if len(s.Tools) > maxStatsRows || len(s.Dead) > maxStatsRows {
		p.addNote("Each list shows at most %d entries. For more, pass -o json.", maxStatsRows)
	}
}

func formatFractionAsPercent(part float64) string { return fmt.Sprintf("%.0f %%", part*100) }
