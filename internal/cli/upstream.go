package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
)

func (r *run) upstreamCommand() *cobra.Command {
	return group("upstream", "The servers behind MCPProxy",
		"  mcpproxy upstream list\n  mcpproxy upstream get github\n  mcpproxy upstream restart github",
		r.upstreamList(), r.upstreamGet(), r.upstreamRestart(), r.upstreamLogs())
}

func (r *run) upstreamList() *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "All servers with their state",
		Example: "  mcpproxy upstream list\n  mcpproxy upstream list -o json",
		Args:    atMost(0),
		RunE: r.ask(func(ctx context.Context, c *api.Client, _ []string) error {
			servers, err := c.Servers(ctx)
			if err != nil {
				return err
			}
			return r.print(api.ServerList{Servers: servers}, func(w io.Writer) { r.writeServers(w, servers) })
		}),
	}
}

func (r *run) writeServers(w io.Writer, servers []gateway.ServerView) {
	if len(servers) == 0 {
		r.note("No server is configured. Add one under mcpServers in the file that `mcpproxy config path` names.")
		return
	}
	t := table{run: r, header: []string{"NAME", "PROTOCOL", "STATE", "TOOLS", "NOTE"}, right: map[int]bool{3: true}}
	for _, s := range servers {
		note := s.LastError
		if s.State == "ready" {
			note = "" // what was wrong is over
		}
		t.add(oneLine(s.Name), oneLine(s.Protocol), r.state(s), toolCount(s), oneLine(note))
	}
	t.write(w)
}

// state is the state in one word; what switches the server off comes first.
func (r *run) state(s gateway.ServerView) string {
	switch {
	case !s.Enabled:
		return r.paint(faint, "disabled")
	case s.Quarantined:
		return r.paint(care, "quarantined")
	case s.State == "ready":
		return r.paint(good, "ready")
	case s.LastError != "":
		return r.paint(bad, oneLine(s.State))
	}
	return oneLine(s.State)
}

// toolCount is the number of tools, and of those that can be called if they differ.
func toolCount(s gateway.ServerView) string {
	if s.Tools == nil {
		return strconv.Itoa(s.ToolCount)
	}
	return fmt.Sprintf("%d/%d", s.Tools.Callable, s.ToolCount)
}

func (r *run) upstreamGet() *cobra.Command {
	return &cobra.Command{
		Use:               "get <server>",
		Short:             "One server in full",
		Example:           "  mcpproxy upstream get github\n  mcpproxy upstream get github -o yaml",
		Args:              exactly("server"),
		ValidArgsFunction: r.complete(serverNames),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			s, err := c.Server(ctx, args[0])
			if err != nil {
				return err
			}
			return r.print(s, func(w io.Writer) { r.writeServer(w, s) })
		}),
	}
}

func (r *run) writeServer(w io.Writer, s gateway.ServerView) {
	var f fields
	f.add("Name", oneLine(s.Name))
	f.add("State", r.state(s))
	f.add("Since", r.moment(s.Since))
	f.add("Next try", r.moment(s.RetryAt))
	f.add("Last error", printable(s.LastError))
	f.add("Protocol", oneLine(s.Protocol))
	f.add("MCP revision", oneLine(s.ProtocolVersion))
	f.add("Command", oneLine(strings.Join(append([]string{s.Command}, s.Args...), " ")))
	f.add("URL", oneLine(s.URL))
	if s.PID != 0 {
		f.add("Process", strconv.Itoa(s.PID))
	}
	f.add("Restarts", strconv.Itoa(s.Restarts))
	f.add("Tools", strconv.Itoa(s.ToolCount))
	if s.Tools != nil {
		f.add("", counts(*s.Tools))
	}
	f.write(w)
}

// counts is why tools of a server cannot be called, one reason a line.
func counts(c gateway.Counts) string {
	var out []string
	for _, reason := range []struct {
		word  string
		count int
	}{
		{"callable", c.Callable}, {"server_disabled", c.ServerDisabled}, {"server_quarantined", c.ServerQuarantined},
		{"disabled_by_config", c.DisabledByConfig}, {"disabled_by_user", c.DisabledByUser},
		{"pending_approval", c.PendingApproval}, {"disabled_unknown", c.DisabledUnknown},
	} {
		if reason.count > 0 || reason.word == "callable" {
			out = append(out, fmt.Sprintf("%d %s", reason.count, reason.word))
		}
	}
	return strings.Join(out, "\n")
}

// moment is a time as the tables show it; nothing for nil.
func (r *run) moment(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.In(r.Local).Format(time.DateTime)
}

func (r *run) upstreamRestart() *cobra.Command {
	return &cobra.Command{
		Use:               "restart <server>",
		Short:             "Stop a server and start it anew",
		Long:              "Stops a server and starts it anew, and waits up to 10 seconds until it is ready or has failed. When it has failed, the exit code is 7.",
		Example:           "  mcpproxy upstream restart github",
		Args:              exactly("server"),
		ValidArgsFunction: r.complete(serverNames),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			s, err := c.RestartServer(ctx, args[0])
			if err != nil {
				return err
			}
			if err := r.print(s, func(w io.Writer) {
				fmt.Fprintf(w, "Restarted %s: it is now %s.\n", oneLine(s.Name), r.state(s))
			}); err != nil {
				return err
			}
			return failedRestart(s)
		}),
	}
}

// failedRestart is the failure of a server that did not come up again; nil when
// it did, or is still at it.
func failedRestart(s gateway.ServerView) error {
	if s.State == "ready" || s.State == "connecting" {
		return nil
	}
	message := "Server '" + s.Name + "' did not come up again."
	if s.LastError != "" {
		message = "Server '" + s.Name + "' did not come up again: " + s.LastError
	}
	return problem.New(problem.ServerUnavailable, message, "See `mcpproxy upstream logs "+s.Name+"`.")
}

func (r *run) upstreamLogs() *cobra.Command {
	var lines int
	cmd := &cobra.Command{
		Use:               "logs <server>",
		Short:             "The end of a server's log",
		Example:           "  mcpproxy upstream logs github\n  mcpproxy upstream logs github --lines 20",
		Args:              exactly("server"),
		ValidArgsFunction: r.complete(serverNames),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			if lines < 1 {
				return usage("Invalid value '"+strconv.Itoa(lines)+"' for --lines: must be at least 1", "")
			}
			tail, err := c.ServerLogs(ctx, args[0], lines)
			if err != nil {
				return err
			}
			return r.print(tail, func(w io.Writer) {
				for _, line := range tail.Lines {
					fmt.Fprintln(w, printable(line))
				}
				if len(tail.Lines) == 0 {
					r.note("The log of %s is empty.", oneLine(args[0]))
				}
			})
		}),
	}
	cmd.Flags().IntVarP(&lines, "lines", "n", 100, "how many `lines`")
	return cmd
}
