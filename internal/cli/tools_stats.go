package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gateway"
)

// The most rows of a list that a person is shown; all are in -o json.
const maxStatsRows = 20

func (r *run) toolsStats() *cobra.Command {
	var since string
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "How well tools are found, and which nobody calls",
		Long: "Reads the activity log of this machine: which tool was called after which search, and at which place the search had it. " +
			"Searches that no call followed are not in the log, so the figures are about needs that were met.",
		Example: "  mcpproxy tools stats\n  mcpproxy tools stats --since 30d\n  mcpproxy tools stats -o json",
		Args:    atMost(0),
		RunE: r.ask(func(ctx context.Context, c *api.Client, _ []string) error {
			from, err := r.parseTime("--since", since)
			if err != nil {
				return err
			}
			stats, err := c.ToolStats(ctx, from)
			if err != nil {
				return err
			}
			return r.print(stats, func(w io.Writer) { r.writeStats(w, stats) })
		}),
	}
	cmd.Flags().StringVar(&since, "since", "", "only calls from this `time` on, such as 30d or 2026-01-15")
	return cmd
}

func (r *run) writeStats(w io.Writer, s gateway.ToolStats) {
	if s.Calls == 0 {
		r.note("No tool was called in that time.")
		return
	}
	var f fields
	f.add("Since", s.Since.In(r.Local).Format("2006-01-02 15:04"))
	f.add("Calls", fmt.Sprint(s.Calls))
	f.add("Searches", fmt.Sprintf("%d that calls followed", s.Searches))
	if s.Searches > 0 {
		f.add("Found first", percent(s.Recall1))
		f.add("Among 3, 5, 10", strings.Join([]string{percent(s.Recall3), percent(s.Recall5), percent(s.Recall10)}, ", "))
		f.add("MRR", fmt.Sprintf("%.2f", s.MRR))
		f.add("Missed", fmt.Sprint(s.Missed))
	}
	f.add("Never called", fmt.Sprintf("%d callable tools", s.DeadAll))
	f.write(w)
	fmt.Fprintln(w)
	t := table{run: r, header: []string{"TOOL", "CALLS", "FOUND", "MISSED", "MEAN PLACE", "LAST CALL"}}
	for _, u := range s.Tools[:min(len(s.Tools), maxStatsRows)] {
		place := ""
		if u.Found > 0 {
			place = fmt.Sprintf("%.1f", u.Rank)
		}
		t.add(oneLine(u.Name), fmt.Sprint(u.Calls), fmt.Sprint(u.Found), fmt.Sprint(u.Missed), place, u.Last.In(r.Local).Format("2006-01-02 15:04"))
	}
	t.write(w)
	if len(s.Dead) > 0 {
		fmt.Fprint(w, "\nNever called\n")
	}
	for _, name := range s.Dead[:min(len(s.Dead), maxStatsRows)] {
		fmt.Fprintf(w, "  %s\n", oneLine(name))
	}
	if s.Cut {
		r.note("Only the latest %d calls were read.", s.Calls)
	}
	if len(s.Tools) > maxStatsRows || len(s.Dead) > maxStatsRows {
		r.note("The lists are cut at %d; -o json gives more.", maxStatsRows)
	}
}

func percent(part float64) string { return fmt.Sprintf("%.0f %%", part*100) }
