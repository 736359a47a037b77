package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/gate/presence"
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
	if f.FutureFile.Path == "" {
		return nil
	}
	return singleFinding(Finding{State: Warn, Subject: f.FutureFile.Path, What: fmt.Sprintf("%s was last written %s from now.", f.FutureFile.Path, f.FutureFile.Changed.Sub(f.Now).Round(time.Second)),
		Do: "Check the clock (`date`, `timedatectl`): it is wrong now, or was wrong when the file was written. If it is correct now:", Command: "find " + ops.ShellQuote(f.FutureFile.Path) + " -newermt now -exec touch {} +"})
}

func checkPresenceOff(_ *Facts, d *DaemonFacts) []Finding {
	if d.Presence.On {
		return nil
	}
	return singleFinding(Finding{State: Note, What: "Presence is off (presence: none): approvals need no passphrase or passkey."})
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
	if len(missing) == 0 {
		return nil
	}
	return singleFinding(Finding{State: Bad, What: "The fingerprint of the presence key is missing or different in " + strings.Join(missing, ", ") + ".", Do: d.Presence.Remedy, Command: f.cliCommand("presence test")})
}

func checkPresenceVoid(f *Facts, d *DaemonFacts) []Finding {
	p := d.Presence
	if p.Void == "" || len(placesWithoutAnchor(p)) > 0 { // checkPresenceAnchor already reports the cause
		return nil
	}
	return singleFinding(Finding{State: Bad, What: p.Void, Do: p.Remedy, Command: f.cliCommand("presence test")})
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
