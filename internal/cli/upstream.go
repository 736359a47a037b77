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
		"  mcpproxy upstream list\n  mcpproxy upstream add files -- npx -y @modelcontextprotocol/server-filesystem /tmp\n"+
			"  mcpproxy upstream restart files\n  mcpproxy upstream review files",
		r.upstreamList(), r.upstreamGet(), r.upstreamRestart(), r.upstreamLogin(), r.upstreamLogout(), r.upstreamLogs(),
		r.upstreamAdd(), r.upstreamRemove(), r.upstreamEnable("enable", true), r.upstreamEnable("disable", false), r.upstreamSet(),
		r.upstreamReview(), r.upstreamApprove(), r.upstreamQuarantine())
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
		r.note("No server is configured. Add one with `mcpproxy upstream add`, or under mcpServers in the file that `mcpproxy config path` names.")
		return
	}
	t := table{run: r, header: []string{"NAME", "PROTOCOL", "STATE", "TOOLS", "NOTE"}, right: map[int]bool{3: true}}
	for _, s := range servers {
		note, add := s.LastError, t.addWhole
		switch {
		case s.NeedsLogin:
			note = loginNote(s)
		case s.Enabled && s.Quarantined:
			note = "mcpproxy upstream approve " + s.Name
		case s.State == "ready":
			note = "" // what was wrong is over
		case s.Hint != "":
			note = "never started: mcpproxy upstream restart " + s.Name
		default:
			add = t.add
		}
		add(oneLine(s.Name), oneLine(s.Protocol), r.state(s), toolCount(s), oneLine(note))
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
	case s.State == "needs_login":
		return r.paint(care, "needs login")
	case s.State == "ready":
		return r.paint(good, "ready")
	case s.State == "idle":
		return "idle"
	case s.State == "stopped":
		return "connecting" // it is wanted: that is about to begin
	case s.LastError != "":
		return r.paint(bad, oneLine(s.State))
	}
	return oneLine(s.State)
}

// loginNote is the remedy for a server that asks for a login.
func loginNote(s gateway.ServerView) string { return "mcpproxy upstream login " + s.Name }

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
	f.add("Review", reviewStage(s.Stage))
	f.add("Proposed by", oneLine(s.ProposedBy))
	f.add("Trust", oneLine(s.Trust))
	if s.Lazy {
		f.add("Lazy", "not started before its first call")
	}
	if s.Session != "" {
		f.add("Session", "shared by its clients")
	}
	f.add("Since", r.moment(s.Since))
	f.add("Next try", r.moment(s.RetryAt))
	f.add("Last error", printable(s.LastError))
	if s.NeedsLogin {
		f.add("Remedy", oneLine(loginNote(s)))
	}
	f.add("Protocol", oneLine(s.Protocol))
	f.add("MCP revision", oneLine(s.ProtocolVersion))
	if s.Command != "" {
		f.add("Command", quotedWords(append([]string{s.Command}, s.Args...)...))
	}
	f.add("URL", oneLine(s.URL))
	if s.PID != 0 {
		f.add("Process", strconv.Itoa(s.PID))
	}
	f.add("Restarts", strconv.Itoa(s.Restarts))
	f.add("Tools", strconv.Itoa(s.ToolCount))
	f.add("", oneLine(s.Hint))
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
	if s.State == "ready" || s.State == "connecting" || s.State == "idle" {
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
