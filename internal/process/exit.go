package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
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

// telling is the last line that says something, fit to be printed. Node ends
// what it says of an error with its stack and its own version, npm with the
// place of its log; the error is named before that.
func (l *lastLines) telling() string {
	l.mu.Lock()
	lines := strings.Split(string(l.tail[max(0, len(l.tail)-maxLastLines):]), "\n")
	l.mu.Unlock()
	last, trace := "", false
	for i := len(lines) - 1; i >= 0; i-- {
		line := strings.TrimSpace(lines[i])
		switch {
		case line == "" || strings.Contains(line, "A complete log of this run can be found in"):
		case last == "" && strings.HasPrefix(line, "Node.js v"):
			trace = true
		case !trace && !strings.HasPrefix(line, "at "):
			return printableLine(line)
		case last == "":
			trace, last = true, line
			fallthrough
		default:
			if name, _, ok := strings.Cut(line, ":"); ok && strings.HasSuffix(strings.TrimPrefix(name, "Uncaught "), "Error") {
				return printableLine(line)
			}
		}
	}
	return printableLine(last)
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
