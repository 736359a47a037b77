package ops

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/ondisk"
	"mcpproxy/internal/store/activity"
)

// CheckState is the result of a check.
type CheckState string

// The states of a check.
const (
	stateOK   CheckState = "ok"
	stateWarn CheckState = "warn"
	stateBad  CheckState = "bad"
)

// Check is one check of the diagnostics.
type Check struct {
	Code   string     `json:"code" doc:"The subject of the check, for programs: log, database, disk, key_file, config_file, config_history, restart, address, clock, config_unconfirmed, server, login, approvals, approvals_lost or warning. There can be several of server, login and warning."`
	Title  string     `json:"title"`
	State  CheckState `json:"state" enum:"ok,warn,bad" doc:"ok, warn or bad."`
	Detail string     `json:"detail"`
	Fix    string     `json:"fix,omitempty" doc:"A command that fixes the problem, or the recommended action."`
}

// Diagnostics lists the checks in a fixed order.
type Diagnostics struct {
	Checks []Check `json:"checks"`
}

// Thresholds and limits.
const (
	lowDiskSpace, criticalDiskSpace = 1 << 30, 100 << 20 // bytes
	maxServerChecks                 = 200                // number of reported servers
	databaseTimeout                 = 2 * time.Second
)

// RunDiagnostics runs all checks. It contacts no server.
func (s *ConfigOperations) RunDiagnostics(ctx context.Context, c Caller, _ Nothing) (Diagnostics, error) {
	trust := s.gateway.MissingApprovalWarnings() // before Status, because reading clears the resolved warnings
	status, err := s.gateway.Status(ctx, c, Nothing{})
	if err != nil {
		return Diagnostics{}, err
	}
	servers, err := s.gateway.Servers(ctx, c, Nothing{})
	if err != nil {
		return Diagnostics{}, err
	}
	all := []Check{s.checkActivityLog(status), s.checkDatabase(ctx), s.checkDiskSpace(), s.checkAPIKeyFile()}
	all = append(all, s.checkConfigFile(ctx, c)...)
	all = append(all, checkPendingRestart(status), s.checkListenAddress(status), checkClock(time.Now().Round(0).Sub(status.StartedAt.Round(0)), time.Since(status.StartedAt)))
	all = append(all, checkUnconfirmedChanges(s.live.Unconfirmed()))
	all = append(all, checkServers(status, servers)...)
	all = append(all, s.checkApprovals(status, servers, trust)...)
	return Diagnostics{all}, nil
}

func (s *ConfigOperations) checkActivityLog(status Status) Check {
	if h := status.Activity; h.Degraded {
		return Check{"log", "Activity log", stateBad, h.Message, "Free space on the disk of " + status.DataDir + ", and check that it is writable."}
	}
	switch v := status.Activity.Verified; {
	case v == nil:
		return Check{"log", "Activity log", stateOK, "It is writable. It has not been verified since the start.", ""}
	case !v.OK:
		return Check{"log", "Activity log", stateBad, "Records were changed: verified " + v.At.Format(time.RFC3339) + ".", "GET /activity/verify returns the first changed record. Copy " + status.DataDir + " first."}
	default:
		return Check{"log", "Activity log", stateOK, "It is writable. It was verified as unchanged: " + v.At.Format(time.RFC3339) + ".", ""}
	}
}

func (s *ConfigOperations) checkDatabase(ctx context.Context) Check {
	ctx, cancel := context.WithTimeout(ctx, databaseTimeout)
	defer cancel()
	page, err := s.gateway.Log.List(ctx, activity.Filter{Limit: 1})
	switch {
	case err != nil:
		return Check{"database", "Database", stateBad, "It does not respond: " + err.Error(), "mcpproxy status"}
	case page.Incomplete:
		return Check{"database", "Database", stateWarn, "It does not accept records now. They wait in the spool.", "mcpproxy status"}
	}
	return Check{"database", "Database", stateOK, "It answers.", ""}
}

func (s *ConfigOperations) checkDiskSpace() Check {
	check := Check{"disk", "Disk space", stateOK, "It is not known.", ""}
	free, known := ondisk.FreeSpace(s.dataDir)
	if !known {
		return check
	}
	size, unit := free>>20, "MB"
	if size >= 10<<10 {
		size, unit = size>>10, "GB"
	}
	check.Detail = fmt.Sprintf("%d %s are free on the disk of %s.", size, unit, s.dataDir)
	if free < lowDiskSpace {
		check.State, check.Fix = stateWarn, "df -h "+ShellQuote(s.dataDir)
	}
	if free < criticalDiskSpace {
		check.State = stateBad
	}
	return check
}

func (s *ConfigOperations) checkAPIKeyFile() Check {
	check := Check{"key_file", "API key", stateOK, "It is set in the configuration.", ""}
	if s.live.Current().APIKey != "" {
		return check
	}
	path := filepath.Join(s.dataDir, auth.KeyFile)
	switch info, err := os.Stat(path); {
	case err != nil:
		check.State, check.Detail, check.Fix = stateWarn, path+" cannot be read: "+errorWithoutPath(err), "ls -l "+ShellQuote(path)
	case isAccessibleToOthers(info):
		check.State, check.Detail, check.Fix = stateBad, fmt.Sprintf("Other users can read %s: its mode is %04o.", path, info.Mode().Perm()), "chmod 600 "+ShellQuote(path)
	default:
		check.Detail = "Other users cannot read " + path + "."
	}
	return check
}

// isAccessibleToOthers reports whether other users can access a file.
func isAccessibleToOthers(info os.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}

// errorWithoutPath returns the text of an error without the file path.
func errorWithoutPath(err error) string {
	if path := (*fs.PathError)(nil); errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}

func (s *ConfigOperations) checkConfigFile(ctx context.Context, c Caller) []Check {
	file := Check{"config_file", "Configuration file", stateOK, s.live.Path() + " is applied.", ""}
	shown, err := s.Config(ctx, c, Nothing{})
	info, statErr := os.Stat(s.live.Path())
	switch {
	case err != nil:
		file.State, file.Detail = stateBad, err.Error()
	case shown.Error != "":
		file.State, file.Detail, file.Fix = stateBad, "It was rejected, and the previous configuration stays active: "+shown.Error, "mcpproxy config validate"
	case statErr == nil && isAccessibleToOthers(info):
		file.State, file.Fix = stateWarn, "chmod 600 "+ShellQuote(s.live.Path())
		file.Detail = fmt.Sprintf("Other users can read %s: its mode is %04o.", s.live.Path(), info.Mode().Perm())
	case statErr != nil:
		file.Detail = "There is no file " + s.live.Path() + ": the defaults apply."
	}
	past := Check{"config_history", "Earlier configurations", stateOK, "They are stored in " + s.history.dir + ".", ""}
	if err := s.history.lastWriteError(); err != nil {
		past.State, past.Detail, past.Fix = stateWarn, "The last text could not be stored: "+err.Error(), "ls -ld "+ShellQuote(s.history.dir)
	}
	return []Check{file, past}
}

func checkPendingRestart(status Status) Check {
	if len(status.NeedsRestart) > 0 {
		return Check{"restart", "Restart", stateWarn, "These changes require a restart: " + strings.Join(status.NeedsRestart, ", ") + ".", "Stop MCPProxy, then run: mcpproxy serve"}
	}
	return Check{"restart", "Restart", stateOK, "No change requires a restart.", ""}
}

func (s *ConfigOperations) checkListenAddress(status Status) Check {
	check := Check{"address", "Address", stateOK, "", ""}
	if len(status.Surfaces) > 0 {
		check.Detail = "Clients connect to " + status.Surfaces[0].Address + "."
		listener := status.Surfaces[0].Address
		for _, s := range status.Surfaces {
			if s.Name == ListenerSurface {
				listener = s.Address
			}
		}
		_, rest, _ := strings.Cut(listener, "://")
		at, _, _ := strings.Cut(rest, "/")
		if wanted := s.live.Current().Listen; !strings.HasSuffix(wanted, ":0") && portOfAddress(wanted) != portOfAddress(at) && len(status.NeedsRestart) == 0 {
			check.State, check.Fix = stateWarn, "Free the port, then restart MCPProxy."
			check.Detail += " It should be " + wanted + ", which was in use."
		}
	}
	return check
}

func portOfAddress(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// checkClock compares the wall clock with the monotonic clock. It reports only backward jumps, because the wall clock
// jumps forward after a suspend.
func checkClock(clock, steady time.Duration) Check {
	const most = time.Minute
	if back := steady - clock; back > most {
		return Check{"clock", "Clock", stateWarn, fmt.Sprintf("It was set back by %s since MCPProxy started. Record times overlap.", back.Round(time.Second)), "timedatectl"}
	}
	return Check{"clock", "Clock", stateOK, "It was not set back since MCPProxy started.", ""}
}

func checkUnconfirmedChanges(waits config.UnconfirmedChanges) Check {
	confirm := "mcpproxy config confirm"
	if waits.Remedy != "" { // the remedy belongs to one of the warnings
		confirm = "mcpproxy presence test"
	}
	switch said := waits.Warnings(); {
	case waits.Why != "":
		return Check{"config_unconfirmed", "Unconfirmed changes", stateBad, strings.Join(said, "; "), confirm}
	case len(said) > 0:
		return Check{"config_unconfirmed", "Unconfirmed changes", stateWarn, said[0], confirm}
	}
	return Check{"config_unconfirmed", "Unconfirmed changes", stateOK, "No change in the file waits for confirmation.", ""}
}

func checkServers(status Status, servers ServerViews) (out []Check) {
	waits := map[string]bool{} // servers reported with the approvals and logins
	for _, v := range servers.Servers {
		waits[v.Name] = v.Quarantined || v.NeedsLogin
	}
	for _, n := range status.Servers.NotReady {
		if waits[n.Name] {
			continue
		}
		state := stateWarn
		if n.State == "failed" {
			state = stateBad
		}
		out = append(out, Check{"server", "Server " + n.Name, state, n.Detail, "mcpproxy upstream logs " + n.Name})
	}
	for _, v := range servers.Servers {
		if v.NeedsLogin {
			out = append(out, Check{"login", "Login to " + v.Name, stateWarn, "The server requires a login.", "mcpproxy login " + v.Name})
		}
	}
	if more := len(out) - maxServerChecks; more > 0 {
		out = append(out[:maxServerChecks], Check{"server", "Servers", stateBad, fmt.Sprintf("And %d more.", more), "mcpproxy upstream list"})
	}
	if out == nil {
		out = append(out, Check{"server", "Servers", stateOK, fmt.Sprintf("%d of %d enabled servers can be used.", status.Servers.Ready+status.Servers.Idle, status.Servers.Enabled), ""})
	}
	return out
}

// checkApprovals reports pending approvals, approvals that are lost or not loaded, and the other warnings of the
// status.
func (s *ConfigOperations) checkApprovals(status Status, servers ServerViews, trust []string) []Check {
	tools, quarantined, proposed := 0, 0, 0
	for _, v := range servers.Servers {
		if v.Tools != nil && !v.Quarantined {
			tools += v.Tools[policy.PendingApproval]
		}
		switch {
		case v.ProposedBy != "":
			proposed++
		case v.Quarantined:
			quarantined++
		}
	}
	waits := Check{"approvals", "Approvals", stateOK, "Nothing needs review.", ""}
	if tools+quarantined+proposed+status.Offers.Waiting > 0 {
		waits.State, waits.Fix = stateWarn, "mcpproxy approvals"
		var pending []string
		for _, kind := range []struct {
			label string
			count int
		}{{"servers", quarantined + proposed}, {"tools", tools}, {"prompts, resources and instructions", status.Offers.Waiting}} {
			if kind.count > 0 {
				pending = append(pending, fmt.Sprintf("%d (%s)", kind.count, kind.label))
			}
		}
		waits.Detail = "These need review: " + strings.Join(pending, ", ") + "."
	}
	out := []Check{waits}
	said := map[string]bool{}
	for _, w := range trust {
		said[w] = true
		if s.gateway.Book.ApprovalsLost() {
			out = append(out, Check{"approvals_lost", "Lost approvals", stateBad, w, "mcpproxy approvals"})
		} else {
			out = append(out, Check{"approvals", "Approvals", stateBad, w, "mcpproxy status"})
		}
	}
	for _, v := range servers.Servers {
		said["Server '"+v.Name+"' requires a login: mcpproxy login "+v.Name] = v.NeedsLogin
	}
	for _, w := range s.live.Unconfirmed().Warnings() {
		said[w] = true
	}
	for _, w := range status.Warnings {
		if !said[w] && len(out) < maxServerChecks {
			out = append(out, Check{"warning", "Warning", stateWarn, w, "mcpproxy status"})
		}
	}
	return out
}
