package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/doctor"
)

func newStatusCommand(r *invocation) commandSpec {
	return commandSpec{run: r.withDaemonClient(func(ctx context.Context, c *api.Client, _ []string) error {
		s, err := api.GetStatus.Call(ctx, c, ops.Nothing{})
		if api.IsDaemonAbsentError(err) {
			if down := r.printOfflineStatus(ctx); down != nil {
				return down
			}
		}
		if err != nil {
			return err
		}
		var waiting ops.Waiting
		if r.output == formatTable {
			waiting, _ = api.ListApprovals.Call(ctx, c, ops.PendingApprovalsQuery{}) // the status is still useful without it
		}
		return r.printOutput(s, func(p *printer) { writeDaemonStatus(p, s, waiting) })
	})}
}

func writeDaemonStatus(p *printer, s ops.Status, waiting ops.Waiting) {
	p.writeLine("MCPProxy %s is %s (process %d, up %s)", toOneLine(s.Version), p.colorize(colorGood, "running"), s.PID,
		formatUptime(time.Duration(s.UptimeSeconds)*time.Second))
	fmt.Fprintln(p)
	if s.Pause != nil {
		writePause(p, *s.Pause)
	}
	var f fieldList
	f.add("Servers", fmt.Sprintf("%d of %d ready%s%s", s.Servers.Ready, s.Servers.Enabled, formatCountUnlessZero(s.Servers.Idle, ", %d idle"), formatCountUnlessZero(s.Servers.Total-s.Servers.Enabled, ", %d disabled")))
	f.add("Tools", fmt.Sprintf("%d callable of %d", s.Tools.Callable, s.Tools.Total))
	f.add("Waiting", p.colorize(colorWarning, waitingApprovalsText(countWaitingApprovals(waiting))))
	if n := s.Held.Pending; n > 0 {
		f.add("Held", p.colorize(colorWarning, countWithNoun(n, "call")+": mcpproxy pending list"))
	}
	f.add("Leases", p.colorize(colorWarning, formatCountUnlessZero(s.Held.Leases, "%d running: mcpproxy lease list")))
	for _, surface := range s.Surfaces {
		f.add(formatSurfaceName(toOneLine(surface.Name)), toOneLine(surface.Address))
	}
	f.add("Configuration", toOneLine(s.ConfigPath))
	f.add("Data", toOneLine(s.DataDir))
	f.write(p)
	writeNotReadyServers(p, s.Servers.NotReady, func(n ops.NotReady) (string, string) { return n.Name, n.Detail })
	if s.Activity.Degraded {
		p.writeWrapped("", "\n"+p.colorize(colorBad, "The activity log is degraded:")+" "+toOneLine(s.Activity.Message))
	}
	if s.ConfigError != "" {
		p.writeWrapped("", "\n"+p.colorize(colorBad, "The configuration file was rejected; the previous configuration is active:"))
		p.writeWrapped("  ", toPrintable(s.ConfigError))
	}
	if len(s.NeedsRestart) > 0 {
		p.writeWrapped("", "\n"+p.colorize(colorWarning, "Requires a restart:")+" "+toOneLine(strings.Join(s.NeedsRestart, ", ")))
	}
	for _, warning := range s.Warnings {
		p.writeWrapped("", "\n"+p.colorize(colorWarning, "Warning:")+" "+toOneLine(warning))
	}
}

// writeNotReadyServers lists the servers that cannot be used, with reasons.
func writeNotReadyServers[T any](p *printer, servers []T, nameAndDetail func(T) (name, detail string)) {
	if len(servers) == 0 {
		return
	}
	fmt.Fprintf(p, "\n%s\n", p.colorize(colorWarning, "Not ready:"))
	f := fieldList{indent: "  "}
	for _, s := range servers {
		name, detail := nameAndDetail(s)
		f.add(toOneLine(name), toOneLine(detail))
	}
	f.write(p)
}

// countWaitingApprovals counts servers, tools and other definitions that wait for approval. It skips the definitions of
// a server whose approvals were lost, because they are approved with the server.
func countWaitingApprovals(waiting ops.Waiting) (servers, tools, others int) {
	tools, others = max(waiting.TotalTools, len(waiting.Tools)), max(waiting.TotalOffers, len(waiting.Offers))
	for _, s := range waiting.Forgotten {
		tools, others = tools-s.Tools, others-s.Offers
	}
	return len(waiting.Servers) + len(waiting.Forgotten), tools, others
}

// waitingApprovalsText summarizes the pending approvals. It returns "" if there are none.
func waitingApprovalsText(servers, tools, others int) string {
	var what []string
	if servers > 0 {
		what = append(what, countWithNoun(servers, "server"))
	}
	if tools > 0 {
		what = append(what, countWithNoun(tools, "tool"))
	}
	if others > 0 {
		what = append(what, countWithNoun(others, "other definition"))
	}
	if what == nil {
		return ""
	}
	return joinNamesInSentence(what) + ": mcpproxy approvals"
}

func formatSurfaceName(name string) string {
	switch name {
	case "mcp", "rest", "ui":
		return strings.ToUpper(name)
	}
	return capitalizeFirst(name)
}

// formatCountUnlessZero formats n with the format note. It returns "" if n is 0.
func formatCountUnlessZero(n int, note string) string {
	if n > 0 {
		return fmt.Sprintf(note, n)
	}
	return ""
}

// formatUptime formats a duration in its two largest units.
func formatUptime(d time.Duration) string {
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

// offlineStatus is the output of `status` without a daemon. It is read from the files.
type offlineStatus struct {
	Running     bool                  `json:"running"`
	ConfigPath  string                `json:"config_path"`
	DataDir     string                `json:"data_dir"`
	ConfigError string                `json:"config_error,omitempty"`
	Servers     offlineServers        `json:"servers"`
	Waiting     doctor.PendingReviews `json:"waiting"`
	Warnings    []string              `json:"warnings,omitempty"`
}

type offlineServers struct {
	Total    int                        `json:"total"`
	Enabled  int                        `json:"enabled"`
	NotReady []doctor.UnavailableServer `json:"not_ready"`
}

// printOfflineStatus prints the status without a daemon.
func (r *invocation) printOfflineStatus(ctx context.Context) error {
	options, err := r.newDoctorOptions()
	if err != nil {
		return err
	}
	options.Ask = func(context.Context) (*doctor.DaemonFacts, error) { return nil, doctor.ErrAbsent } // known: no daemon is running
	f := doctor.GatherFacts(ctx, options)
	s := offlineStatus{ConfigPath: f.ConfigPath, DataDir: f.DataDir, ConfigError: f.ConfigErrorText(), Waiting: f.PendingReviews(), Warnings: f.Warnings}
	s.Servers.NotReady = f.UnavailableServers()
	for _, server := range f.Servers {
		if server.ProposedBy != "" {
			continue
		}
		s.Servers.Total++
		if server.Enabled {
			s.Servers.Enabled++
		}
	}
	return r.printOutput(s, func(p *printer) { writeOfflineStatus(p, s) })
}

func writeOfflineStatus(p *printer, s offlineStatus) {
	p.writeLine("MCPProxy is %s. From its files:", p.colorize(colorBad, "not running"))
	fmt.Fprintln(p)
	var f fieldList
	f.add("Servers", fmt.Sprintf("%d enabled%s", s.Servers.Enabled, formatCountUnlessZero(s.Servers.Total-s.Servers.Enabled, ", %d disabled")))
	f.add("Waiting", p.colorize(colorWarning, waitingApprovalsText(len(s.Waiting.Servers), s.Waiting.Tools, s.Waiting.Offers)))
	f.add("Configuration", toOneLine(s.ConfigPath))
	f.add("Data", toOneLine(s.DataDir))
	f.write(p)
	writeNotReadyServers(p, s.Servers.NotReady, func(u doctor.UnavailableServer) (string, string) { return u.Name, u.Detail })
	if s.ConfigError != "" {
		p.writeWrapped("", "\n"+p.colorize(colorBad, "The configuration file is invalid:"))
		p.writeWrapped("  ", toPrintable(s.ConfigError))
	}
	for _, warning := range s.Warnings {
		p.writeWrapped("", "\n"+p.colorize(colorWarning, "Warning:")+" "+toOneLine(warning))
	}
	fmt.Fprintln(p)
}
