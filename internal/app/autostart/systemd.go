package autostart

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"mcpproxy/internal/problem"
)

// systemdManager is the systemd instance of a user.
type systemdManager struct{ account UserAccount }

const unit = name + ".service"

func (s *systemdManager) unitFilePath() string {
	return filepath.Join(cmp.Or(s.account.Config, filepath.Join(s.account.Home, ".config")), "systemd", "user", unit)
}

func (s *systemdManager) Install(ctx context.Context, p Program) (changed bool, err error) {
	if err := p.rejectControlChars(); err != nil {
		return false, err
	}
	before, err := s.State(ctx)
	if err != nil {
		return false, err
	}
	if changed, err = writeServiceFile(s.unitFilePath(), "# "+fileMarker+". To change it: systemctl --user edit mcpproxy\n"+SystemdUnitText(p)); err != nil {
		return false, err
	}
	start := "start"
	if changed {
		start = "restart"
	}
	for _, args := range [][]string{{"daemon-reload"}, {"enable", unit}, {start, unit}} {
		if err := s.runSystemctl(ctx, args...); err != nil {
			return changed, err
		}
	}
	return changed || !before.Enabled || !before.Running, nil
}

func (s *systemdManager) Uninstall(ctx context.Context) (was bool, err error) {
	before, err := s.State(ctx)
	if err != nil {
		return false, err
	}
	if _, err := readOwnServiceFile(s.unitFilePath()); err != nil {
		return false, err
	}
	if before.Installed {
		if err := s.runSystemctl(ctx, "disable", "--now", unit); err != nil {
			return false, err
		}
	}
	if was, err = removeServiceFile(s.unitFilePath()); err != nil || !was {
		return before.Enabled || before.Running, err
	}
	if err := s.runSystemctl(ctx, "daemon-reload"); err != nil {
		return true, err
	}
	_ = s.runSystemctl(ctx, "reset-failed", unit) // this fails if there is no failure to reset
	return true, nil
}

func (s *systemdManager) runSystemctl(ctx context.Context, args ...string) error {
	if _, err := s.account.Run(ctx, "systemctl", append([]string{"--user", "--quiet"}, args...)...); err != nil {
		return newStepError("systemctl --user "+args[0]+" failed", err)
	}
	return nil
}

func (s *systemdManager) State(ctx context.Context) (ServiceState, error) {
	said, err := s.account.Run(ctx, "systemctl", "--user", "show", unit,
		"--property=LoadState,ActiveState,SubState,Result,MainPID,UnitFileState,FragmentPath,NRestarts")
	if err != nil {
		return ServiceState{}, problem.New(problem.Conflict, "Cannot reach systemd for this user: "+strings.Join(strings.Fields(err.Error()), " "),
			"Log in as the user, without sudo or su. If systemd does not run, as in a container, start `mcpproxy serve` yourself.").Because(err)
	}
	is := map[string]string{}
	for line := range strings.Lines(said) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		is[name] = value
	}
	state := ServiceState{
		Manager: "systemd", File: is["FragmentPath"], Installed: is["LoadState"] == "loaded",
		Enabled: strings.HasPrefix(is["UnitFileState"], "enabled"), Running: is["ActiveState"] == "active",
		Detail:  is["ActiveState"] + " (" + is["SubState"] + ")",
		Restart: "systemctl --user restart mcpproxy", Log: "journalctl --user -u mcpproxy -n 20",
	}
	state.PID, _ = strconv.Atoi(is["MainPID"])
	if is["LoadState"] != "loaded" && is["LoadState"] != "not-found" {
		state.Detail += ", the unit is " + is["LoadState"]
	}
	if result := is["Result"]; result != "" && result != "success" {
		state.Detail += ", the last run ended with " + result
	}
	if n := is["NRestarts"]; n != "" && n != "0" {
		state.Detail += ", restarts: " + n
	}
	return state, nil
}

// SystemdUnitText returns a user unit that runs a program. The program stops its servers, so that their calls can end; the rest is killed after it.
func SystemdUnitText(p Program) string {
	var out strings.Builder
	fmt.Fprintf(&out, `[Unit]
Description=MCPProxy, one endpoint in front of all MCP servers
Documentation=man:mcpproxy(1)

[Service]
Type=exec
ExecStart=%s
`, systemdCommandLine(p))
	if p.Dir != "" {
		fmt.Fprintf(&out, "WorkingDirectory=%s\n", strings.ReplaceAll(p.Dir, "%", "%%"))
	}
	for _, variable := range p.Env {
		fmt.Fprintf(&out, "Environment=%s\n", quoteSystemdArg(variable))
	}
	out.WriteString(`Restart=on-failure
RestartSec=5
KillMode=mixed
TimeoutStopSec=30

[Install]
WantedBy=default.target
`)
	return out.String()
}

// systemdCommandLine returns a command line without expansion.
func systemdCommandLine(p Program) string {
	words := []string{quoteSystemdArg(p.Path)}
	for _, arg := range p.Args {
		words = append(words, quoteSystemdArg(strings.ReplaceAll(arg, "$", "$$")))
	}
	return strings.Join(words, " ")
}

// quoteSystemdArg quotes one argument of a unit where needed.
func quoteSystemdArg(word string) string {
	word = strings.ReplaceAll(word, "%", "%%")
	if word != "" && !strings.ContainsAny(word, " \t\"'\\;") {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}
