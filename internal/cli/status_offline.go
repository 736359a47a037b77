package cli

import (
	"context"
	"fmt"

	"mcpproxy/internal/ops/doctor"
)

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
