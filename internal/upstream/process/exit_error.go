package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"unicode"
	"unicode/utf8"
)

// SpawnError means that a process could not be started.
type SpawnError struct {
	Command string
	Dir     string // the missing working directory, if that is the reason
	err     error
}

func (e *SpawnError) Error() string { return "start the process: " + e.err.Error() }
func (e *SpawnError) Unwrap() error { return e.err }

// Reason returns a short reason, such as "not found".
func (e *SpawnError) Reason() string {
	switch {
	case errors.Is(e.err, exec.ErrNotFound), errors.Is(e.err, fs.ErrNotExist):
		return "not found"
	case errors.Is(e.err, fs.ErrPermission), errors.Is(e.err, syscall.EISDIR):
		return "not executable"
	case errors.Is(e.err, syscall.ENOEXEC):
		return "not a program of this system"
	}
	if reason := syscall.Errno(0); errors.As(e.err, &reason) {
		return "not startable (" + reason.Error() + ")"
	}
	return "not startable (" + e.err.Error() + ")"
}

// ExitError means that a process has exited by itself.
type ExitError struct {
	state *os.ProcessState
	err   error // from Wait
	last  *stderrTail
}

func (e *ExitError) Error() string {
	if e.err == nil {
		return "the process ended with status 0"
	}
	return "the process ended: " + e.err.Error()
}

func (e *ExitError) Unwrap() error { return e.err }

// Reason returns how it ended, such as "exit status 3" or "signal: killed".
func (e *ExitError) Reason() string {
	if e.state == nil {
		return "its process ended"
	}
	return e.state.String()
}

// CauseLine returns the line of stderr that best explains the exit, "" without one.
func (e *ExitError) CauseLine() string { return e.last.causeLine() }

// noNetwork matches network errors of package managers.
var noNetwork = regexp.MustCompile(`\b(?:EAI_AGAIN|ENOTFOUND|ENETUNREACH|EHOSTUNREACH|ENETDOWN)\b|(?i:dns error|failed to lookup address|temporary failure in name resolution|name or service not known|network is unreachable|no route to host|nodename nor servname)`)

// NoNetwork reports whether the line is a network error.
func (e *ExitError) NoNetwork() bool { return noNetwork.MatchString(e.CauseLine()) }

// stderrTail stores the end of a process's stderr.
type stderrTail struct {
	mu   sync.Mutex // guards the fields below
	tail []byte
}

const (
	maxLastLines = 8 << 10
	maxLastLine  = 300 // characters of a reported line
)

func (l *stderrTail) addBytes(b []byte) {
	if len(b) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tail = append(l.tail, b[max(0, len(b)-maxLastLines):]...)
	if beyond := len(l.tail) - maxLastLines; beyond > maxLastLines {
		l.tail = append(l.tail[:0], l.tail[beyond:]...)
	}
}

// causeLine returns the line that explains the exit, safe to print: the last one that
// names a failure, else the last one. It skips what programs add to an error (stack
// traces, usage).
func (l *stderrTail) causeLine() string {
	l.mu.Lock()
	tail := string(l.tail[max(0, len(l.tail)-maxLastLines):])
	l.mu.Unlock()
	var lines []string
	for line := range strings.SplitSeq(tail, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	for _, find := range []func([]string) string{npmErrorCause, nodeErrorLine, failureLine, lastInformativeLine} {
		if line := find(lines); line != "" {
			return printableLine(line)
		}
	}
	return ""
}

var (
	npmLine           = regexp.MustCompile(`^npm (?:error|ERR!) ?(.*)`)
	npmDetail         = regexp.MustCompile(`^(?:code|errno|syscall|path|dest|file|cwd|signal|command|enoent|A complete log of this run|\d+|\s|$)`)
	npmAbsent         = regexp.MustCompile(`could not be found|is not in (?:this|the npm) registry`)
	uninformativeLine = regexp.MustCompile(`(?i)^(?:at |node\.js v|\^+$|[{}()\[\]]+[,;]?$|goroutine \d|exit status \d+|note: |usage\b|options:|-{1,2}\w|see |run ['"\x60]|try ['"\x60]|for (?:more|further) |more information|` +
		`exiting|shutting down|shutdown|stopp(?:ed|ing)|bye\b|goodbye|clean(?:ing|ed) up|(?:error )?command failed with exit code|error: process completed with|.*a complete log of this run)`)
	failureWord = regexp.MustCompile(`(?i)\b(?:not set|unset|undefined|required|missing|not found|no such|cannot|can't|could not|couldn't|unable|failed|failure|fail|denied|forbidden|unauthorized|invalid|` +
		`refused|expired|not allowed|not supported|unsupported|unknown|must (?:be|have|set|provide)|please (?:set|provide|specify)|in use|error|fatal|panic|panicked|exception)\b|\w(?:Error|Exception)\b|\bE[A-Z]{4,}\b`)
	notice = regexp.MustCompile(`(?i)^(?:npm )?(?:\W*)(?:warn(?:ing)?|info|debug|notice|trace)\b`)
)

// npmErrorCause returns the cause that npm reports, without the code before it and the log
// path after it.
func npmErrorCause(lines []string) string {
	cause, absent := "", ""
	for _, line := range lines {
		m := npmLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if absent == "" && npmAbsent.MatchString(m[1]) {
			absent = strings.TrimSpace(strings.TrimPrefix(m[1], "404"))
		}
		words := m[1]
		if rest, ok := strings.CutPrefix(words, "404 "); ok && strings.HasPrefix(rest, "Not Found") {
			words = rest
		}
		if cause == "" && !npmDetail.MatchString(words) {
			cause = line
		}
	}
	if cause != "" && absent != "" && !strings.Contains(cause, absent) {
		cause += ": " + absent
	}
	return cause
}

// nodeErrorLine returns the error that Node prints before its stack trace and version.
func nodeErrorLine(lines []string) string {
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "Node.js v") }) {
		return ""
	}
	for _, line := range slices.Backward(lines) {
		if name, _, ok := strings.Cut(line, ":"); ok && strings.HasSuffix(strings.TrimPrefix(name, "Uncaught "), "Error") {
			return line
		}
	}
	return ""
}

// failureLine returns the last line that names a failure.
func failureLine(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if !uninformativeLine.MatchString(line) && !notice.MatchString(line) && failureWord.MatchString(line) {
			return line
		}
	}
	return ""
}

// lastInformativeLine returns the last informative line, else the last one.
func lastInformativeLine(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if !uninformativeLine.MatchString(line) {
			return line
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// printableLine returns a line of a server without control characters, shortened.
func printableLine(s string) string {
	var b strings.Builder
	n := 0
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		if n++; n > maxLastLine {
			b.WriteString("…")
			break
		}
		switch {
		case r == '\t':
			b.WriteByte(' ')
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u{%x}`, r)
		}
	}
	return b.String()
}
