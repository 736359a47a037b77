package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gateway"
)

func (r *run) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "What runs, and what is wrong",
		Example: "  mcpproxy status\n  mcpproxy status -o json",
		Args:    atMost(0),
		RunE: r.ask(func(ctx context.Context, c *api.Client, _ []string) error {
			s, err := c.Status(ctx)
			if err != nil {
				return err
			}
			var waiting gateway.Waiting
			if r.output == formatTable {
				waiting, _ = c.Approvals(ctx) // the status is worth telling without it
			}
			return r.print(s, func(w io.Writer) { r.writeStatus(w, s, waiting) })
		}),
	}
}

func (r *run) writeStatus(w io.Writer, s gateway.Status, waiting gateway.Waiting) {
	fmt.Fprintf(w, "MCPProxy %s is %s (process %d, up %s)\n\n", oneLine(s.Version), r.paint(good, "running"), s.PID,
		uptime(time.Duration(s.UptimeSeconds)*time.Second))
	var f fields
	f.add("Servers", fmt.Sprintf("%d of %d ready%s%s", s.Servers.Ready, s.Servers.Enabled, idleNote(s.Servers), disabledNote(s.Servers)))
	f.add("Tools", fmt.Sprintf("%d callable of %d", s.Tools.Callable, s.Tools.Total))
	f.add("Waiting", r.paint(care, waitingNote(waiting)))
	for _, surface := range s.Surfaces {
		f.add(surfaceName(oneLine(surface.Name)), oneLine(surface.Address))
	}
	f.add("Configuration", oneLine(s.ConfigPath))
	f.add("Data", oneLine(s.DataDir))
	f.write(w)
	if s.Activity.Degraded {
		fmt.Fprintf(w, "\n%s %s\n", r.paint(bad, "The activity log is degraded:"), oneLine(s.Activity.Message))
	}
	if s.ConfigError != "" {
		fmt.Fprintf(w, "\n%s\n%s\n", r.paint(bad, "The configuration file was refused; the old configuration is live:"),
			indentBy("  ", printable(s.ConfigError)))
	}
	if len(s.NeedsRestart) > 0 {
		fmt.Fprintf(w, "\n%s %s\n", r.paint(care, "After a restart only:"), oneLine(strings.Join(s.NeedsRestart, ", ")))
	}
	for _, warning := range s.Warnings {
		fmt.Fprintf(w, "\n%s %s\n", r.paint(care, "Warning:"), oneLine(warning))
	}
}

// waitingNote is what waits for a person, in one line; empty when nothing does.
func waitingNote(waiting gateway.Waiting) string {
	var what []string
	if n := len(waiting.Servers); n > 0 {
		what = append(what, counted(n, "server"))
	}
	if n := max(waiting.TotalTools, len(waiting.Tools)); n > 0 {
		what = append(what, counted(n, "tool"))
	}
	if what == nil {
		return ""
	}
	return strings.Join(what, " and ") + " for you: mcpproxy approvals"
}

func surfaceName(name string) string {
	switch name {
	case "mcp", "rest":
		return strings.ToUpper(name)
	}
	return sentence(name)
}

func idleNote(s gateway.StatusServers) string {
	if s.Idle > 0 {
		return fmt.Sprintf(", %d idle", s.Idle)
	}
	return ""
}

func disabledNote(s gateway.StatusServers) string {
	if n := s.Total - s.Enabled; n > 0 {
		return fmt.Sprintf(", %d disabled", n)
	}
	return ""
}

// uptime is a duration as a person says it.
func uptime(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}
