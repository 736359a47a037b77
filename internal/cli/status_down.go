package cli

import (
	"context"
	"fmt"

	"mcpproxy/internal/ops/doctor"
)

// downStatus is the output of `status` without a daemon: what the files tell.
type downStatus struct {
	Running     bool                  `json:"running"`
	ConfigPath  string                `json:"config_path"`
	DataDir     string                `json:"data_dir"`
	ConfigError string                `json:"config_error,omitempty"`
	Servers     downServers           `json:"servers"`
	Waiting     doctor.PendingReviews `json:"waiting"`
	Warnings    []string              `json:"warnings,omitempty"`
}

type downServers struct {
	Total    int                        `json:"total"`
	Enabled  int                        `json:"enabled"`
	NotReady []doctor.UnavailableServer `json:"not_ready"`
}

// printDown prints what is known without a daemon.
func (r *run) printDown(ctx context.Context) error {
	options, err := r.doctorOptions()
	if err != nil {
		return err
	}
	options.Ask = func(context.Context) (*doctor.DaemonFacts, error) { return nil, doctor.ErrAbsent } // it was asked already
	f := doctor.GatherFacts(ctx, options)
	s := downStatus{ConfigPath: f.ConfigPath, DataDir: f.DataDir, ConfigError: f.ConfigErrorText(), Waiting: f.PendingReviews(), Warnings: f.Warnings}
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
	return r.print(s, func(p *printer) { writeDown(p, s) })
}

func writeDown(p *printer, s downStatus) {
	p.line("MCPProxy is %s. What its files say:", p.paint(hueBad, "not running"))
	fmt.Fprintln(p)
	var f fields
	f.add("Servers", fmt.Sprintf("%d enabled%s", s.Servers.Enabled, countNote(s.Servers.Total-s.Servers.Enabled, ", %d disabled")))
	f.add("Waiting", p.paint(hueWarning, downWaiting(s.Waiting)))
	f.add("Configuration", oneLine(s.ConfigPath))
	f.add("Data", oneLine(s.DataDir))
	f.write(p)
	if len(s.Servers.NotReady) > 0 {
		fmt.Fprintf(p, "\n%s\n", p.paint(hueWarning, "Not ready:"))
		f := fields{indent: "  "}
		for _, one := range s.Servers.NotReady {
			f.add(oneLine(one.Name), oneLine(one.Detail))
		}
		f.write(p)
	}
	if s.ConfigError != "" {
		p.text("", "\n"+p.paint(hueBad, "The configuration file is not right:"))
		p.text("  ", printable(s.ConfigError))
	}
	for _, warning := range s.Warnings {
		p.text("", "\n"+p.paint(hueWarning, "Warning:")+" "+oneLine(warning))
	}
	fmt.Fprintln(p)
}

// downWaiting summarizes what waits for approval; "" for nothing.
func downWaiting(w doctor.PendingReviews) string {
	var what []string
	for _, one := range []struct {
		n    int
		noun string
	}{{len(w.Servers), "server"}, {w.Tools, "tool"}} {
		if one.n > 0 {
			what = append(what, counted(one.n, one.noun))
		}
	}
	if w.Offers > 0 {
		what = append(what, fmt.Sprintf("%d beside tools", w.Offers))
	}
	return approvalsNote(what)
}
