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

// SpawnError is a process that could not be started.
type SpawnError struct {
	Command string
	Dir     string // that it was to start in, when that is why
	err     error
}

func (e *SpawnError) Error() string { return "start the process: " + e.err.Error() }
func (e *SpawnError) Unwrap() error { return e.err }

// Said returns in our own words what it is, such as "not found".
func (e *SpawnError) Said() string {
	switch {
	case errors.Is(e.err, exec.ErrNotFound), errors.Is(e.err, fs.ErrNotExist):
		return "not found"
	case errors.Is(e.err, fs.ErrPermission), errors.Is(e.err, syscall.EISDIR):
		return "not executable"
	case errors.Is(e.err, syscall.ENOEXEC):
		return "not a program of this system"
	}
	return "not to be started"
}

// ExitError is a process that has ended by itself.
type ExitError struct {
	state *os.ProcessState
	err   error // of waiting for it
	last  *lastLines
}

func (e *ExitError) Error() string {
	if e.err == nil {
		return "the process ended with status 0"
	}
	return "the process ended: " + e.err.Error()
}

func (e *ExitError) Unwrap() error { return e.err }

// Said returns how it ended, such as "exit status 3" or "signal: killed".
func (e *ExitError) Said() string {
	if e.state == nil {
		return "its process ended"
	}
	return e.state.String()
}

// LastLine returns the last line of stderr that says something, "" when there is none.
func (e *ExitError) LastLine() string { return e.last.telling() }

// noNetwork is what package managers write when the network is away.
var noNetwork = regexp.MustCompile(`\b(?:EAI_AGAIN|ENOTFOUND|ENETUNREACH|EHOSTUNREACH|ENETDOWN)\b|(?i:dns error|failed to lookup address|temporary failure in name resolution|name or service not known|network is unreachable|no route to host|nodename nor servname)`)

// NoNetwork reports whether the line says that the network could not be reached.
func (e *ExitError) NoNetwork() bool { return noNetwork.MatchString(e.LastLine()) }

// lastLines keeps the end of what a process writes to stderr.
type lastLines struct {
	mu   sync.Mutex // guards what follows
	tail []byte
}

const (
	maxLastLines = 8 << 10
	maxLastLine  = 300 // characters that are told of a line
)

func (l *lastLines) add(b []byte) {
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

// telling is the line that says why, fit to be printed: the last one that names a failure, else
// the last one. What programs add to an error (stacks, usage, their farewell) is passed over.
func (l *lastLines) telling() string {
	l.mu.Lock()
	tail := string(l.tail[max(0, len(l.tail)-maxLastLines):])
	l.mu.Unlock()
	var lines []string
	for line := range strings.SplitSeq(tail, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	for _, find := range []func([]string) string{npmError, nodeError, failureLine, lastLine} {
		if line := find(lines); line != "" {
			return printableLine(line)
		}
	}
	return ""
}

var (
	npmLine   = regexp.MustCompile(`^npm (?:error|ERR!) ?(.*)`)
	npmDetail = regexp.MustCompile(`^(?:code|errno|syscall|path|dest|file|cwd|signal|command|enoent|A complete log of this run|\d+|\s|$)`)
	npmAbsent = regexp.MustCompile(`could not be found|is not in (?:this|the npm) registry`)
	farewell  = regexp.MustCompile(`(?i)^(?:at |node\.js v|\^+$|[{}()\[\]]+[,;]?$|goroutine \d|exit status \d+|note: |usage\b|options:|-{1,2}\w|see |run ['"\x60]|try ['"\x60]|for (?:more|further) |more information|` +
		`exiting|shutting down|shutdown|stopp(?:ed|ing)|bye\b|goodbye|clean(?:ing|ed) up|(?:error )?command failed with exit code|error: process completed with|.*a complete log of this run)`)
	failureWord = regexp.MustCompile(`(?i)\b(?:not set|unset|undefined|required|missing|not found|no such|cannot|can't|could not|couldn't|unable|failed|failure|fail|denied|forbidden|unauthorized|invalid|` +
		`refused|expired|not allowed|not supported|unsupported|unknown|must (?:be|have|set|provide)|please (?:set|provide|specify)|in use|error|fatal|panic|panicked|exception)\b|\w(?:Error|Exception)\b|\bE[A-Z]{4,}\b`)
	notice = regexp.MustCompile(`(?i)^(?:npm )?(?:\W*)(?:warn(?:ing)?|info|debug|notice|trace)\b`)
)

// npmError is what npm names as the cause: not the code before it, nor the place of its log after it.
func npmError(lines []string) string {
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

// nodeError is the error that Node names before its stack and its own version.
func nodeError(lines []string) string {
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

// failureLine is the last line that names a failure.
func failureLine(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if !farewell.MatchString(line) && !notice.MatchString(line) && failureWord.MatchString(line) {
			return line
		}
	}
	return ""
}

// lastLine is the last line that is no farewell, else the last one.
func lastLine(lines []string) string {
	for _, line := range slices.Backward(lines) {
		if !farewell.MatchString(line) {
			return line
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1]
}

// printableLine is text of a server as it may be shown to a person: without
// control characters and not too long.
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
