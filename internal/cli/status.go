package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
)

func statusCommand(r *run) command {
	return command{run: r.withClient(func(ctx context.Context, c *api.Client, _ []string) error {
		s, err := api.GetStatus.Call(ctx, c, ops.Nothing{})
		if api.IsDaemonAbsent(err) {
			if down := r.printDown(ctx); down != nil {
				return down
			}
		}
		if err != nil {
			return err
		}
		var waiting ops.Waiting
		if r.output == formatTable {
			waiting, _ = api.ListApprovals.Call(ctx, c, ops.PendingApprovalsQuery{}) // the status is worth telling without it
		}
		return r.print(s, func(p *printer) { writeStatus(p, s, waiting) })
	})}
}

func writeStatus(p *printer, s ops.Status, waiting ops.Waiting) {
	p.line("MCPProxy %s is %s (process %d, up %s)", oneLine(s.Version), p.paint(hueGood, "running"), s.PID,
		uptime(time.Duration(s.UptimeSeconds)*time.Second))
	fmt.Fprintln(p)
	var f fields
	f.add("Servers", fmt.Sprintf("%d of %d ready%s%s", s.Servers.Ready, s.Servers.Enabled, countNote(s.Servers.Idle, ", %d idle"), countNote(s.Servers.Total-s.Servers.Enabled, ", %d disabled")))
	f.add("Tools", fmt.Sprintf("%d callable of %d", s.Tools.Callable, s.Tools.Total))
	f.add("Waiting", p.paint(hueWarning, waitingNote(waiting)))
	if n := s.Held.Pending; n > 0 {
		f.add("Held", p.paint(hueWarning, counted(n, "call")+" for you: mcpproxy pending list"))
	}
	f.add("Leases", p.paint(hueWarning, countNote(s.Held.Leases, "%d running: mcpproxy lease list")))
	for _, surface := range s.Surfaces {
		f.add(surfaceName(oneLine(surface.Name)), oneLine(surface.Address))
	}
	f.add("Configuration", oneLine(s.ConfigPath))
	f.add("Data", oneLine(s.DataDir))
	f.write(p)
	writeNotReady(p, s.Servers.NotReady)
	if s.Activity.Degraded {
		p.text("", "\n"+p.paint(hueBad, "The activity log is degraded:")+" "+oneLine(s.Activity.Message))
	}
	if s.ConfigError != "" {
		p.text("", "\n"+p.paint(hueBad, "The configuration file was refused; the old configuration is live:"))
		p.text("  ", printable(s.ConfigError))
	}
	if len(s.NeedsRestart) > 0 {
		p.text("", "\n"+p.paint(hueWarning, "After a restart only:")+" "+oneLine(strings.Join(s.NeedsRestart, ", ")))
	}
	for _, warning := range s.Warnings {
		p.text("", "\n"+p.paint(hueWarning, "Warning:")+" "+oneLine(warning))
	}
}

// writeNotReady lists the servers that cannot be used now, with reasons.
func writeNotReady(p *printer, servers []ops.NotReady) {
	if len(servers) == 0 {
		return
	}
	fmt.Fprintf(p, "\n%s\n", p.paint(hueWarning, "Not ready:"))
	f := fields{indent: "  "}
	for _, s := range servers {
		f.add(oneLine(s.Name), oneLine(s.Detail))
	}
	f.write(p)
}

// waitingNote summarizes what waits for approval; "" for nothing.
func waitingNote(waiting ops.Waiting) string {
	var what []string
	tools, offers := max(waiting.TotalTools, len(waiting.Tools)), max(waiting.TotalOffers, len(waiting.Offers))
	for _, s := range waiting.Forgotten { // approved with their server
		tools, offers = tools-s.Tools, offers-s.Offers
	}
	if n := len(waiting.Servers) + len(waiting.Forgotten); n > 0 {
		what = append(what, counted(n, "server"))
	}
	if n := tools; n > 0 {
		what = append(what, counted(n, "tool"))
	}
	if n := offers; n > 0 {
		what = append(what, fmt.Sprintf("%d beside tools", n))
	}
	return approvalsNote(what)
}

// approvalsNote joins counts of what waits for approval; "" for nothing.
func approvalsNote(what []string) string {
	if what == nil {
		return ""
	}
	if n := len(what); n > 2 {
		what = []string{strings.Join(what[:n-1], ", "), what[n-1]}
	}
	return strings.Join(what, " and ") + " for you: mcpproxy approvals"
}

func surfaceName(name string) string {
	switch name {
	case "mcp", "rest", "ui":
		return strings.ToUpper(name)
	}
	return sentence(name)
}

// countNote formats a note about n things; "" for none.
func countNote(n int, note string) string {
	if n > 0 {
		return fmt.Sprintf(note, n)
	}
	return ""
}

// uptime formats a duration in its two largest units.
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
