package cli

import (
	"context"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gateway"
)

func (r *run) approvalsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "approvals",
		Short: "Everything that waits for you: servers and tools",
		Long: `Lists the servers that wait for review and the tools whose definition nobody has
approved, with what the scanner found and the command with which to look and
decide. Nothing that waits can be called.`,
		Example: "  mcpproxy approvals\n  mcpproxy approvals -o json",
		Args:    atMost(0),
		RunE: r.ask(func(ctx context.Context, c *api.Client, _ []string) error {
			waiting, err := c.Approvals(ctx)
			if err != nil {
				return err
			}
			return r.print(waiting, func(w io.Writer) { r.writeWaiting(w, waiting) })
		}),
	}
}

func (r *run) writeWaiting(w io.Writer, waiting gateway.Waiting) {
	if len(waiting.Servers)+len(waiting.Tools) == 0 {
		r.note("Nothing waits for you.")
		return
	}
	t := table{run: r, header: []string{"WHAT", "WAITS", "FINDINGS", "AGE", "LOOK AND DECIDE"}, right: map[int]bool{2: true}}
	for _, s := range waiting.Servers {
		t.addWhole(visibleLine(s.Name), "server: "+visibleLine(string(s.Stage)), findingCount(s.Findings), r.age(s.ProposedAt), "mcpproxy upstream approve "+quotedWord(s.Name))
	}
	for _, v := range waiting.Tools {
		t.addWhole(visibleLine(v.Name), "tool: "+visibleLine(string(v.Reason)), findingCount(len(v.Findings)), "", "mcpproxy tools approve "+quotedWord(v.Name))
	}
	t.write(w)
	r.noteLeftOut(waiting)
}

// noteLeftOut says that the list is not the whole.
func (r *run) noteLeftOut(waiting gateway.Waiting) {
	if more := waiting.TotalTools - len(waiting.Tools); more > 0 {
		r.note("%s more that are not shown. They are shown when these are decided.", counted(more, "tool"))
	}
}

func findingCount(n int) string {
	if n == 0 {
		return "-"
	}
	return strconv.Itoa(n)
}

// age is how long ago something was, in its largest unit.
func (r *run) age(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	d := max(r.Now().Sub(*t), 0)
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}} {
		if d >= unit.length {
			return strconv.Itoa(int(d/unit.length)) + unit.name
		}
	}
	return strconv.Itoa(int(d/time.Second)) + "s"
}

// waitingTools completes the names of tools that wait.
func waitingTools(ctx context.Context, c *api.Client, _ string) []string {
	waiting, _ := c.Approvals(ctx)
	var names []string
	for _, t := range waiting.Tools {
		names = append(names, t.Name)
	}
	return names
}

// waitingServers completes the names of servers that wait, and else of all.
func waitingServers(ctx context.Context, c *api.Client, typed string) []string {
	waiting, _ := c.Approvals(ctx)
	var names []string
	for _, s := range waiting.Servers {
		names = append(names, s.Name)
	}
	if names == nil {
		return serverNames(ctx, c, typed)
	}
	return names
}
