package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"mcpproxy/internal/ondisk"
	"mcpproxy/internal/ops"
)

func checkDaemonNotRunning(f *Facts) []Finding {
	if f.Daemon != nil || f.NoAnswerReason != "" || f.Holder.IsKnown() {
		return nil
	}
	return singleFinding(Finding{State: Bad, What: "MCPProxy is not running for the data directory " + f.DataDir + ".",
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
		return singleFinding(Finding{State: Bad, What: "It cannot be read whether calls are paused, so no call passes: " + p.Unknown,
			Do: "Fix the cause. If the stored state is damaged, resume: that stores it again.", Command: f.cliCommand("resume")})
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
	if s.Path == "" || s.Mode.Type() != fs.ModeSocket || s.Mode.Perm()&0o077 == 0 {
		return nil
	}
	return singleFinding(f.openToOthersFinding(s, "The socket"))
}

// checkStaleSocket reports a socket without a listener. It ignores the socket if a daemon has the lock, because that
// daemon may be about to listen.
func checkStaleSocket(f *Facts) []Finding {
	if f.SocketFile.Mode.Type() != fs.ModeSocket || f.Daemon != nil || f.NoAnswerReason != "" || f.Holder.IsKnown() {
		return nil
	}
	return singleFinding(Finding{State: Warn, Subject: f.Socket, What: "No process listens on " + f.Socket + ": its daemon was killed.",
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
	if f.Daemon != nil || f.PortHolder.DataDir == "" || f.PortHolder.DataDir == f.DataDir {
		return nil
	}
	return singleFinding(Finding{State: Bad, Subject: f.Listen,
		What: fmt.Sprintf("Another MCPProxy (process %d) listens on %s, with the data directory %s.", f.PortHolder.PID, f.Listen, f.PortHolder.DataDir),
		Do:   "Use that one, with --data-dir " + ops.ShellQuote(f.PortHolder.DataDir) + ", or start this one on another address.", Command: f.cliCommand("serve --listen %s", f.FreePort)})
}
