package cli

import (
	"fmt"
	"slices"
	"strings"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
)

// The maximum rows of a list in a table; -o json has all.
const maxStatsRows = 20

func toolsStats(r *run) command {
	var since string
	return command{flags: map[string]any{"since": &since}, run: runOperation(r, api.GetToolStats, func([]string) (in ops.StatsQuery, err error) {
		in.Since, err = r.parseTime("--since", since)
		return in, err
	}, writeStats)}
}

func writeStats(p *printer, s ops.ToolStats) {
	if s.Calls == 0 {
		p.note("No tool was called in that time.")
		return
	}
	var f fields
	f.add("Since", s.Since.In(p.local).Format("2006-01-02 15:04"))
	f.add("Calls", fmt.Sprint(s.Calls))
	f.add("Searches", fmt.Sprintf("%d that calls followed", s.Searches))
	if s.Searches > 0 {
		f.add("Found first", percent(s.Recall1))
		f.add("Among 3, 5, 10", strings.Join([]string{percent(s.Recall3), percent(s.Recall5), percent(s.Recall10)}, ", "))
		f.add("MRR", fmt.Sprintf("%.2f", s.MRR))
		f.add("Missed", fmt.Sprint(s.Missed))
	}
	f.add("Never called", fmt.Sprintf("%d callable tools", s.DeadAll))
	f.write(p)
	fmt.Fprintln(p)
	t := table{p: p, header: []string{"TOOL", "CALLS", "FOUND", "MISSED", "MEAN PLACE", "LAST CALL"}, narrow: slices.Concat(
		leaveOut("MEAN PLACE", "MISSED"), shorten("TOOL", 24), leaveOut("FOUND", "LAST CALL"), shorten("TOOL", 8))}
	for _, u := range s.Tools[:min(len(s.Tools), maxStatsRows)] {
		place := ""
		if u.Found > 0 {
			place = fmt.Sprintf("%.1f", u.Rank)
		}
		t.add(oneLine(u.Name), fmt.Sprint(u.Calls), fmt.Sprint(u.Found), fmt.Sprint(u.Missed), place, u.Last.In(p.local).Format("2006-01-02 15:04"))
	}
	t.write()
	if len(s.Dead) > 0 {
		fmt.Fprint(p, "\nNever called\n")
	}
	for _, name := range s.Dead[:min(len(s.Dead), maxStatsRows)] {
		p.text("  ", oneLine(name))
	}
	if s.Cut {
		p.note("Only the latest %d calls were read.", s.Calls)
	}
	if len(s.Tools) > maxStatsRows || len(s.Dead) > maxStatsRows {
		p.note("The lists are cut at %d; -o json gives more.", maxStatsRows)
	}
}

func percent(part float64) string { return fmt.Sprintf("%.0f %%", part*100) }
