package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/ondisk"
	"mcpproxy/internal/ops"
)

// Thresholds for findings.
const (
	lowDiskSpace, criticalDiskSpace = 1 << 30, 100 << 20 // bytes
	highBacklog                     = 10_000             // entries; the database stores about 40,000 per second
)

func checkLogDegraded(f *Facts, d *DaemonFacts) []Finding {
	h := d.Activity
	if !h.Degraded || f.isDatabaseHeldByOther() {
		return nil
	}
	if f.Shared {
		return singleFinding(Finding{State: Bad, What: "The activity log is degraded: " + h.Message + ".",
			Do: "Check that the database is running and can be reached from here, and that the disk of " + f.DataDir + " has free space. MCPProxy then continues automatically. The daemon's log has details.", Command: f.cliCommand("status")})
	}
	return singleFinding(Finding{State: Bad, What: "The activity log is degraded: " + h.Message + ".",
		Do: "Free space on the disk of " + f.DataDir + ", and check that it is writable. MCPProxy then continues automatically. This command shows the largest files:", Command: "du -ah " + ops.ShellQuote(f.DataDir) + " | sort -h | tail"})
}

// isDatabaseHeldByOther reports whether records wait in the spool because another process has the database open.
func (f *Facts) isDatabaseHeldByOther() bool {
	d := f.Daemon
	return d != nil && (d.findDiagnostic("database").State != OK || d.Activity.Backlog > highBacklog) && f.DatabaseHolder.IsKnown()
}

func checkLogBacklog(f *Facts, d *DaemonFacts) []Finding {
	if d.findDiagnostic("database").State == OK && d.Activity.Backlog <= highBacklog {
		return nil
	}
	found := Finding{State: Warn, What: fmt.Sprintf("%d entries wait in the spool (%d KB).", d.Activity.Backlog, d.Activity.Spool>>10),
		Do: "Check whether the disk is slow or full. The daemon's log has the reason.", Command: f.cliCommand("status")}
	if p := f.DatabaseHolder; p.IsKnown() {
		found.What += fmt.Sprintf(" Process %d (%s) has the database open.", p.PID, p.Name)
		found.Do, found.Command = "Stop that process. MCPProxy then continues automatically.", fmt.Sprintf("kill %d", p.PID)
	}
	return singleFinding(found)
}

func checkLogUnchanged(f *Facts) []Finding {
	if f.Daemon == nil {
		return checkLogUnchangedOffline(f)
	}
	v := f.Daemon.Activity.Verified
	if v == nil || v.OK {
		return nil
	}
	return f.changedLogFinding("verified "+v.At.Format(time.RFC3339)+".", "`"+f.cliCommand("activity verify")+"` names the first changed entry. Entries before it are unchanged. Copy the data directory first.")
}

// checkLogUnchangedOffline is like checkLogUnchanged for an installation without a running daemon. It uses the
// verification by this process.
func checkLogUnchangedOffline(f *Facts) []Finding {
	switch {
	case f.FirstAltered != nil:
		return f.changedLogFinding(f.FirstAltered.Reason, "Entries before it are unchanged. Copy the data directory, and find out which users and programs can write to it.")
	case f.LogExtent == readAll:
		return nil
	case f.LogExtent == readPart:
		return skippedFinding(fmt.Sprintf("The log could not be read completely within %s. `%s` reads the whole log while MCPProxy runs.", readTime, f.cliCommand("activity verify")))
	case f.DatabaseDamage != "" || f.DatabaseErr != "":
		return skippedFinding("The log cannot be read: the database is damaged.")
	}
	if f.NoDatabase && f.Daemon == nil {
		return skippedFinding(noDatabaseText)
	}
	return skippedFinding("The doctor reads the log only if no daemon runs.")
}

func (f *Facts) changedLogFinding(why, do string) []Finding {
	return singleFinding(Finding{State: Bad, What: "Records of the activity log were changed: " + why,
		Do: do, Command: "cp -a " + ops.ShellQuote(f.DataDir) + " " + ops.ShellQuote(f.DataDir+"-copy")})
}

func checkDiskSpace(f *Facts) []Finding {
	if !f.FreeKnown {
		return skippedFinding("The free disk space could not be determined.")
	}
	if f.FreeBytes >= lowDiskSpace {
		return nil
	}
	found := Finding{State: Warn, What: fmt.Sprintf("%d MB are free on the disk of %s.", f.FreeBytes>>20, f.DataDir),
		Do: "Free space. This command shows the largest files:", Command: "du -xah " + ops.ShellQuote(mountPoint(existingParent(f.DataDir))) + " 2>/dev/null | sort -h | tail"}
	if f.FreeBytes < criticalDiskSpace {
		found.State = Bad
	}
	return singleFinding(found)
}

func checkClock(f *Facts) []Finding {
	if s := f.Daemon.findDiagnostic("clock"); s.State != OK {
		return singleFinding(Finding{State: Warn, What: s.Detail, Do: "Correct the clock and keep it synchronized, then restart MCPProxy.", Command: f.restartDaemonCommand(f.Daemon.PID)})
	}
	return reportIf(f.FutureFile.Path != "", Finding{State: Warn, Subject: f.FutureFile.Path, What: fmt.Sprintf("%s was last written %s from now.", f.FutureFile.Path, f.FutureFile.Changed.Sub(f.Now).Round(time.Second)),
		Do: "Check the clock (`date`, `timedatectl`): it is wrong now, or was wrong when the file was written. If it is correct now:", Command: "find " + ops.ShellQuote(f.FutureFile.Path) + " -newermt now -exec touch {} +"})
}

func checkPresenceOff(_ *Facts, d *DaemonFacts) []Finding {
	return reportIf(!d.Presence.On, Finding{State: Note, What: "Presence is off (presence: none): approvals need no passphrase or passkey."})
}

// placesWithoutAnchor returns the storage locations where the anchor's fingerprint is missing or different, with their
// states.
func placesWithoutAnchor(v ops.PresenceView) (names []string) {
	for _, place := range v.Places {
		if v.On && v.Anchor != nil && place.State != presence.Matches && place.State != presence.Behind {
			names = append(names, place.Name+" ("+string(place.State)+")")
		}
	}
	return names
}

func checkPresenceAnchor(f *Facts, d *DaemonFacts) []Finding {
	missing := placesWithoutAnchor(d.Presence)
	return reportIf(len(missing) > 0, Finding{State: Bad, What: "The fingerprint of the presence key is missing or different in " + strings.Join(missing, ", ") + ".", Do: d.Presence.Remedy, Command: f.cliCommand("presence test")})
}

func checkPresenceVoid(f *Facts, d *DaemonFacts) []Finding {
	p := d.Presence
	reported := len(placesWithoutAnchor(p)) > 0 // by checkPresenceAnchor
	return reportIf(p.Void != "" && !reported, Finding{State: Bad, What: p.Void, Do: p.Remedy, Command: f.cliCommand("presence test")})
}

func checkPresenceSignatures(f *Facts, d *DaemonFacts) (out []Finding) {
	for _, name := range d.Presence.Bad {
		out = append(out, Finding{State: Bad, Subject: name, What: "The signature of this decision is invalid: " + name + ".", Do: "The decision is not valid. Check the activity log for a change of the database.", Command: f.cliCommand("activity verify")})
	}
	return out
}

func checkUnsignedDecisions(f *Facts, d *DaemonFacts) (out []Finding) {
	for _, what := range d.Presence.Unsigned {
		out = append(out, Finding{State: Bad, Subject: what, What: "This decision has no signature: " + what + ".", Do: "The decision is not valid. If you want this decision, make it again. If you did not make it, a user or a program changed the database.", Command: f.cliCommand("approvals")})
	}
	return out
}

// reportedElsewhere lists the daemon's diagnostics that other checks report.
var reportedElsewhere = []string{"log", "database", "disk", "key_file", "config_file", "restart", "config_unconfirmed", "address", "clock", "server", "login", "approvals", "approvals_lost"}

func checkDaemonWarnings(f *Facts, d *DaemonFacts) (out []Finding) {
	for _, s := range d.Diagnostics {
		if s.State == OK || slices.Contains(reportedElsewhere, s.Code) || slices.Contains(f.Warnings, s.Detail) || strings.Contains(s.Detail, " has the mode ") {
			continue
		}
		out = append(out, Finding{State: s.State, What: s.Detail, Command: s.Fix})
	}
	return out
}

func checkTimedOutParts(f *Facts) (out []Finding) {
	for _, what := range f.TimedOut {
		out = append(out, Finding{State: Warn, Subject: what, What: fmt.Sprintf("%s could not be checked within %s.", strings.ToUpper(what[:1])+what[1:], PartTime),
			Do: "Check whether a disk or the daemon hangs.", Command: "df " + ops.ShellQuote(f.DataDir)})
	}
	return out
}

func checkDaemonNotRunning(f *Facts) []Finding {
	return reportIf(f.Daemon == nil && f.NoAnswerReason == "" && !f.Holder.IsKnown(), Finding{State: Bad, What: "MCPProxy is not running for the data directory " + f.DataDir + ".",
		Do: "Start it. The other checks below run without it.", Command: f.cliCommand("serve")})
}

func checkDaemonSilent(f *Facts) []Finding {
	if f.Daemon != nil || f.NoAnswerReason == "" && !f.Holder.IsKnown() {
		return nil
	}
	found := Finding{State: Bad, What: fmt.Sprintf("Process %d (%s) locks the data directory but does not answer.", f.Holder.PID, f.Holder.Name),
		Do: "Stop it, then start MCPProxy again.", Command: fmt.Sprintf("kill -9 %d", f.Holder.PID)}
	if !f.Holder.IsKnown() {
		found.What, found.Do, found.Command = f.NoAnswerReason, "Find and stop the process that holds the socket.", "fuser -k "+ops.ShellQuote(f.Socket)
	}
	return singleFinding(found)
}

func checkDaemonVersion(f *Facts, d *DaemonFacts) []Finding {
	found := Finding{State: Warn, Do: "Restart the daemon to run this program.", Command: f.restartDaemonCommand(d.PID)}
	gone := strings.HasSuffix(d.Executable, " (deleted)")
	switch {
	case d.Version != f.Version:
		found.What = fmt.Sprintf("The daemon (process %d) is version %s, this command is %s.", d.PID, d.Version, f.Version)
	case gone:
		found.What = fmt.Sprintf("The program of the daemon (process %d) was replaced since it started.", d.PID)
	case d.Executable != "" && d.OwnExecutable != "" && !isSameFile(d.Executable, d.OwnExecutable):
		found.What = fmt.Sprintf("The daemon (process %d) runs %s, this command is %s.", d.PID, d.Executable, d.OwnExecutable)
	default:
		return nil
	}
	return singleFinding(found)
}

func checkCallsPaused(f *Facts, d *DaemonFacts) []Finding {
	p := d.Pause
	switch {
	case p == nil:
		return nil
	case p.Unknown != "":
		return singleFinding(Finding{State: Bad, What: "MCPProxy cannot read whether calls are paused, so it rejects every call: " + p.Unknown,
			Do: "Fix the cause. If the stored state is damaged, run `mcpproxy resume`, which stores it again.", Command: f.cliCommand("resume")})
	}
	what := "All calls are paused by " + p.By
	if p.At != nil {
		what += " since " + p.At.UTC().Format(time.RFC3339)
	}
	if p.Reason != "" {
		what += ": " + p.Reason
	}
	return singleFinding(Finding{State: Warn, What: what, Do: "Resume them when it is safe.", Command: f.cliCommand("resume")})
}

func isSameFile(a, b string) bool {
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

func checkSocketAccess(f *Facts) []Finding {
	s := f.SocketFile
	return reportIf(s.Path != "" && s.Mode.Type() == fs.ModeSocket && s.Mode.Perm()&0o077 != 0, f.openToOthersFinding(s, "The socket"))
}

// checkStaleSocket reports a socket without a listener. It ignores the socket if a daemon has the lock, because that
// daemon may be about to listen.
func checkStaleSocket(f *Facts) []Finding {
	stale := f.SocketFile.Mode.Type() == fs.ModeSocket && f.Daemon == nil && f.NoAnswerReason == "" && !f.Holder.IsKnown()
	return reportIf(stale, Finding{State: Warn, Subject: f.Socket, What: "No process listens on " + f.Socket + ": its daemon was killed.",
		Do: "Remove it, or start MCPProxy: it replaces the socket.", Command: "rm " + ops.ShellQuote(f.Socket),
		fix: func() error { return removeStaleSocket(f.DataDir, f.Socket) }})
}

// removeStaleSocket removes a socket. It takes the daemon lock, so that no daemon can start at the same time.
func removeStaleSocket(dataDir, socket string) error {
	lock, err := ondisk.LockFile(filepath.Join(dataDir, LockFile))
	if err != nil {
		return fmt.Errorf("a daemon has begun to start: %w", err)
	}
	defer func() { _ = lock.Close() }()
	info, err := os.Lstat(socket)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is no longer a socket", socket)
	}
	return os.Remove(socket)
}

func checkPortTaken(f *Facts) []Finding {
	if f.Daemon != nil {
		if s := f.Daemon.findDiagnostic("address"); s.State != OK {
			return singleFinding(Finding{State: Warn, What: s.Detail, Do: "Free the port, then restart MCPProxy.", Command: f.restartDaemonCommand(f.Daemon.PID)})
		}
		return nil
	}
	if !f.PortTaken || f.PortHolder.DataDir != "" {
		return nil
	}
	who := "Another program"
	if f.PortHolder.IsKnown() {
		who = fmt.Sprintf("Process %d (%s)", f.PortHolder.PID, f.PortHolder.Name)
	}
	return singleFinding(Finding{State: Bad, Subject: f.Listen, What: who + " listens on " + f.Listen + ", the address of MCPProxy.",
		Do: "Stop it, or start MCPProxy on another address.", Command: f.cliCommand("serve --listen %s", f.FreePort)})
}

func checkPortOfOtherMCPProxy(f *Facts) []Finding {
	return reportIf(f.Daemon == nil && f.PortHolder.DataDir != "" && f.PortHolder.DataDir != f.DataDir, Finding{State: Bad, Subject: f.Listen,
		What: fmt.Sprintf("Another MCPProxy (process %d) listens on %s, with the data directory %s.", f.PortHolder.PID, f.Listen, f.PortHolder.DataDir),
		Do:   "Use that one, with --data-dir " + ops.ShellQuote(f.PortHolder.DataDir) + ", or start this one on another address.", Command: f.cliCommand("serve --listen %s", f.FreePort)})
}
