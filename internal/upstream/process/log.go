package process

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Log is the log file of one server. It holds stderr, lines of stdout that are not messages, and MCPProxy's remarks. Each line
// has its time and stream (see LogLine), and no secrets or control characters. It rotates by size into one older file and
// limits the rate, so that a flood fills neither disk nor CPU. Without a directory it drops everything.
//
// It does not use lumberjack, which leaks a goroutine for each file.
type Log struct {
	dir  string
	name string // of the file
	now  func() time.Time
	mask Masker

	mu      sync.Mutex // guards the fields below
	lines   lineMasker // of stderr
	root    *os.Root
	file    *os.File
	size    int64
	window  time.Time // start of the second that budget is for
	budget  int
	dropped int64
}

// maxRemark bounds what a remark quotes of a server.
const maxRemark = 2 << 10

const (
	maxLogFile = 5 << 20
	logBurst   = 1 << 20 // bytes per second
)

// NewLog returns the log of a server; the file is created at the first write.
func NewLog(dir, server string, mask Masker) *Log {
	return &Log{dir: dir, name: server + ".log", now: time.Now, mask: mask, lines: lineMasker{own: mask}}
}

// WriteRemark writes a line of MCPProxy itself.
func (l *Log) WriteRemark(text string) {
	if text = maskAndEscape(l.mask.MaskText(text)); len(text) > maxRemark {
		text = text[:maxRemark] + "…"
	}
	l.writeLine(Remarked, strings.ReplaceAll(text, "\n", " "))
}

// WriteStdoutLine writes a line of stdout that is not a message.
func (l *Log) WriteStdoutLine(line []byte) {
	text := maskAndEscape(l.mask.MaskText(string(line[:min(len(line), 2*maxRemark)]))) // before the cut, which could split a secret
	l.writeLine(Stdout, text[:min(len(text), maxRemark)])
}

// writeLine writes a line that is not from stderr, after the stderr so far.
func (l *Log) writeLine(stream Stream, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.appendLines(Stderr, l.lines.flush())
	l.appendLines(stream, maskAndEscape(l.mask.MaskText(string(l.limitRate([]byte(text+"\n"))))))
}

// Write writes stderr of the process. It never fails, so that a log error does not end a
// server.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.appendLines(Stderr, l.lines.addBytes(l.limitRate(b)))
	return len(b), nil
}

// limitRate returns the part of b that may be written in this second.
func (l *Log) limitRate(b []byte) []byte {
	if now := l.now(); now.Sub(l.window) >= time.Second || now.Before(l.window) {
		l.window, l.budget = now, logBurst
		if l.dropped > 0 {
			l.appendLines(Stderr, l.lines.flush())
			l.appendLines(Remarked, fmt.Sprintf("%d bytes were dropped: the server wrote too much at once", l.dropped))
			l.dropped = 0
		}
	}
	n, cost := bytesWithinBudget(b, l.budget)
	if n < len(b) {
		l.dropped += int64(len(b) - n)
		cost = l.budget // so that later text does not come in between
	}
	l.budget -= cost
	return b[:n]
}

// bytesWithinBudget returns how many bytes of b fit the budget, and their cost: their number, plus a prefix for each
// line.
func bytesWithinBudget(b []byte, budget int) (n, cost int) {
	for n < len(b) {
		line := bytes.IndexAny(b[n:], "\r\n") + 1
		whole := line + maxPrefix
		if line == 0 {
			line, whole = len(b)-n, len(b)-n
		}
		if cost+whole > budget {
			return n + min(line-1, budget-cost), budget
		}
		n, cost = n+line, cost+whole
	}
	return n, cost
}

// PartialLine returns the incomplete line of stderr.
func (l *Log) PartialLine() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := lineMasker{own: l.mask, rest: l.lines.rest, key: l.lines.key}
	return strings.TrimSuffix(m.flush(), "\n")
}

// rateExceeded reports whether writes are dropped until the next second.
func (l *Log) rateExceeded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.budget == 0
}

// appendLines writes the lines of text. A line longer than maxLogLine becomes several.
func (l *Log) appendLines(stream Stream, text string) {
	if text == "" || l.dir == "" || l.openIfNeeded() != nil {
		return
	}
	text = prefixLines(l.now(), stream, text)
	if l.size+int64(len(text)) > maxLogFile && l.size > 0 {
		l.file.Close()
		l.file = nil
		if l.root.Rename(l.name, l.name+".1") != nil || l.openIfNeeded() != nil {
			return
		}
	}
	n, _ := l.file.WriteString(text)
	l.size += int64(n)
}

// openIfNeeded opens the file if necessary.
func (l *Log) openIfNeeded() error {
	if l.file != nil {
		return nil
	}
	if l.root == nil {
		if err := os.MkdirAll(l.dir, 0o700); err != nil {
			return err
		}
		root, err := os.OpenRoot(l.dir)
		if err != nil {
			return err
		}
		l.root = root
	}
	f, err := l.root.OpenFile(l.name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	l.file, l.size = f, 0
	if info, err := f.Stat(); err == nil {
		l.size = info.Size()
	}
	return nil
}

// Close writes the incomplete line and closes the log.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.appendLines(Stderr, l.lines.flush())
	if l.file != nil {
		l.file.Close()
	}
	if l.root != nil {
		l.root.Close()
	}
	l.file, l.root = nil, nil
}
