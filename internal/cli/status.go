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
			return r.print(s, func(w io.Writer) { r.writeStatus(w, s) })
		}),
	}
}

func (r *run) writeStatus(w io.Writer, s gateway.Status) {
	fmt.Fprintf(w, "MCPProxy %s is %s (process %d, up %s)\n\n", oneLine(s.Version), r.paint(good, "running"), s.PID,
		uptime(time.Duration(s.UptimeSeconds)*time.Second))
	var f fields
	f.add("Servers", fmt.Sprintf("%d of %d ready%s", s.Servers.Ready, s.Servers.Enabled, disabledNote(s.Servers)))
	f.add("Tools", fmt.Sprintf("%d callable of %d", s.Tools.Callable, s.Tools.Total))
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

func surfaceName(name string) string {
	switch name {
	case "mcp", "rest":
		return strings.ToUpper(name)
	}
	return sentence(name)
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
