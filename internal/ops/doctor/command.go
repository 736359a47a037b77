package doctor

import (
	"fmt"
	"strings"
)

// mcpproxy is a command of ours for the same daemon. The flags stand first: behind "--"
// they would be those of a server.
func (f *Facts) mcpproxy(format string, args ...any) string {
	return "mcpproxy" + f.Flags + " " + fmt.Sprintf(format, args...)
}

// edit is a command that opens the configuration file at a line.
func (f *Facts) edit(line int) string {
	return fmt.Sprintf(`"${EDITOR:-vi}" +%d %s`, max(line, 1), Quoted(f.ConfigPath))
}

// sudo is a command that needs other rights than this user's.
func (f *Facts) sudo(command string) string {
	if f.User == 0 {
		return command
	}
	return "sudo " + command
}

// again is a command that ends a process, waits for it and starts the daemon.
func (f *Facts) again(pid int) string {
	return fmt.Sprintf("kill %d; while kill -0 %d 2>/dev/null; do sleep 0.2; done; %s", pid, pid, f.mcpproxy("serve"))
}

// Quoted is a word as a shell takes it.
func Quoted(word string) string {
	plain := func(r rune) bool {
		return strings.ContainsRune("/._-+:@%,=", r) || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func quotedAll(files []File) string {
	var words []string
	for _, f := range files {
		words = append(words, Quoted(f.Path))
	}
	return strings.Join(words, " ")
}

// one is a check's only finding.
func one(f Finding) []Finding { return []Finding{f} }

// skipped is the finding of a check that has nothing to look at.
func skipped(why string) []Finding { return one(Finding{State: Skipped, What: why}) }

const needsDaemon = "Only a running daemon knows."
