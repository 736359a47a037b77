package doctor

import (
	"fmt"
	"strings"
)

// cliCommand returns a command for the same daemon. The flags come first: after "--" they would belong to a server.
func (f *Facts) cliCommand(format string, args ...any) string {
	return "mcpproxy" + f.Flags + " " + fmt.Sprintf(format, args...)
}

// editCommand returns a command that opens the configuration file at a line.
func (f *Facts) editCommand(line int) string {
	return fmt.Sprintf(`"${EDITOR:-vi}" +%d %s`, max(line, 1), ShellQuote(f.ConfigPath))
}

// sudoCommand returns a command that needs root.
func (f *Facts) sudoCommand(command string) string {
	if f.User == 0 {
		return command
	}
	return "sudo " + command
}

// restartDaemonCommand returns a command that ends a process, waits for it and starts the daemon.
func (f *Facts) restartDaemonCommand(pid int) string {
	return fmt.Sprintf("kill %d; while kill -0 %d 2>/dev/null; do sleep 0.2; done; %s", pid, pid, f.cliCommand("serve"))
}

// ShellQuote quotes a word for a shell.
func ShellQuote(word string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("/._-+:@%,=", r) || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func quotePaths(files []FileFacts) string {
	var words []string
	for _, f := range files {
		words = append(words, ShellQuote(f.Path))
	}
	return strings.Join(words, " ")
}

// singleFinding returns a single finding.
func singleFinding(f Finding) []Finding { return []Finding{f} }

// skippedFinding returns the finding of a check that cannot run.
func skippedFinding(why string) []Finding { return singleFinding(Finding{State: Skipped, What: why}) }

const needsDaemon = "Requires a running daemon."
