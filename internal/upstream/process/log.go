package process

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Log is the log file of one server: what its process writes to stderr,
// what it writes to stdout that is no message, and our own remarks, in lines
// without secrets and without control characters, each behind its time and its
// stream (see LogLine). It rotates by size into one
// older file and limits the rate, so that a flood fills neither the disk nor
// our time. Without a directory it drops everything.
//
// It is not lumberjack because that leaves a goroutine behind for each file.
type Log struct {
	dir  string
	name string // of the file
	now  func() time.Time
	mask Masker

	mu      sync.Mutex // guards what follows
	lines   lineMasker // of stderr
	root    *os.Root
	file    *os.File
	size    int64
	window  time.Time // start of the second that budget is for
	budget  int
	dropped int64
}

// maxRemark is how much is said of what a server has said.
const maxRemark = 2 << 10

const (
	maxLogFile = 5 << 20
	logBurst   = 1 << 20 // bytes per second
)

// NewLog returns the log of a server; its file is made when there is something
// to write.
func NewLog(dir, server string, mask Masker) *Log {
	return &Log{dir: dir, name: server + ".log", now: time.Now, mask: mask, lines: lineMasker{own: mask}}
}

// Remark writes a line of our own.
func (l *Log) Remark(text string) {
	if text = logText(l.mask.Text(text)); len(text) > maxRemark {
		text = text[:maxRemark] + "…"
	}
	l.line(Remarked, strings.ReplaceAll(text, "\n", " "))
}

// Noise writes a line of stdout that is no message.
func (l *Log) Noise(line []byte) {
	text := logText(l.mask.Text(string(line[:min(len(line), 2*maxRemark)]))) // before the cut, which could split a secret
	l.line(Stdout, text[:min(len(text), maxRemark)])
}

// line writes a line that is not of stderr, after what has come of that.
func (l *Log) line(stream Stream, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.append(Stderr, l.lines.flush())
	l.append(stream, logText(l.mask.Text(string(l.admit([]byte(text+"\n"))))))
}

// Write takes what the process writes to stderr. It never fails: a server must
// not end because its log cannot be written.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.append(Stderr, l.lines.add(l.admit(b)))
	return len(b), nil
}

// admit returns what of b may still be written in this second.
func (l *Log) admit(b []byte) []byte {
	if now := l.now(); now.Sub(l.window) >= time.Second || now.Before(l.window) {
		l.window, l.budget = now, logBurst
		if l.dropped > 0 {
			l.append(Stderr, l.lines.flush())
			l.append(Remarked, fmt.Sprintf("%d bytes were left out: too much at once", l.dropped))
			l.dropped = 0
		}
	}
	n, cost := affordable(b, l.budget)
	if n < len(b) {
		l.dropped += int64(len(b) - n)
		cost = l.budget // so that what comes next does not get in between
	}
	l.budget -= cost
	return b[:n]
}

// affordable returns how much of b may be written for a budget, and what that costs:
// its bytes, and for each line what is written before it.
func affordable(b []byte, budget int) (n, cost int) {
	for n < len(b) {
		line := bytes.IndexAny(b[n:], "\r\n") + 1
		whole := line + stampSize
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

// Unfinished returns the line of stderr that has not ended.
func (l *Log) Unfinished() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := lineMasker{own: l.mask, rest: l.lines.rest, key: l.lines.key}
	return strings.TrimSuffix(m.flush(), "\n")
}

// full reports whether what comes is dropped until the next second.
func (l *Log) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.budget == 0
}

// append writes the lines of text. A line that is longer than what is waited for
// (maxLogLine) becomes several.
func (l *Log) append(stream Stream, text string) {
	if text == "" || l.dir == "" || l.open() != nil {
		return
	}
	text = stamped(l.now(), stream, text)
	if l.size+int64(len(text)) > maxLogFile && l.size > 0 {
		l.file.Close()
		l.file = nil
		if l.root.Rename(l.name, l.name+".1") != nil || l.open() != nil {
			return
		}
	}
	n, _ := l.file.WriteString(text)
	l.size += int64(n)
}

// open makes sure that there is a file.
func (l *Log) open() error {
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

// Close ends the log, with the line that has not ended.
func (l *Log) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.append(Stderr, l.lines.flush())
	if l.file != nil {
		l.file.Close()
	}
	if l.root != nil {
		l.root.Close()
	}
	l.file, l.root = nil, nil
}
