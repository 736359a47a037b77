package doctor

import (
	"fmt"
	"strings"

	"mcpproxy/internal/ops"
)

// cliCommand returns an mcpproxy command for the same daemon. It puts the flags first, because flags after "--" would
// be arguments of a server.
func (f *Facts) cliCommand(format string, args ...any) string {
	return "mcpproxy" + f.Flags + " " + fmt.Sprintf(format, args...)
}

// editCommand returns a command that opens the configuration file at a line.
func (f *Facts) editCommand(line int) string {
	return fmt.Sprintf(`"${EDITOR:-vi}" +%d %s`, max(line, 1), ops.ShellQuote(f.ConfigPath))
}

// sudoCommand returns a command with sudo, unless this process runs as root.
func (f *Facts) sudoCommand(command string) string {
	if f.User == 0 {
		return command
	}
	return "sudo " + command
}

// restartDaemonCommand returns a command that ends a process, waits until it has exited and starts the daemon.
func (f *Facts) restartDaemonCommand(pid int) string {
	return fmt.Sprintf("kill %d; while kill -0 %d 2>/dev/null; do sleep 0.2; done; %s", pid, pid, f.cliCommand("serve"))
}

func quotePaths(files []FileFacts) string {
	var words []string
	for _, f := range files {
		words = append(words, ops.ShellQuote(f.Path))
	}
	return strings.Join(words, " ")
}

// singleFinding returns a list with one finding.
func singleFinding(f Finding) []Finding { return []Finding{f} }

// skippedFinding returns the finding of a check that cannot run.
func skippedFinding(why string) []Finding { return singleFinding(Finding{State: Skipped, What: why}) }

// newDaemonCheck returns a check that calls look with the daemon's facts. It is skipped if no daemon is running.
func newDaemonCheck(look func(f *Facts, d *DaemonFacts) []Finding) func(*Facts) []Finding {
	return func(f *Facts) []Finding {
		if f.Daemon == nil {
			return skippedFinding("Requires a running daemon.")
		}
		return look(f, f.Daemon)
	}
}
