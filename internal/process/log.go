package process

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"
)

// Log is the log file of one server: what its process writes to stderr,
// what it writes to stdout that is no message, and our own remarks, in lines
// without secrets and without control characters. It rotates by size into one
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

// MaxRemark is how much is said of what a server has said.
const MaxRemark = 2 << 10

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
	if text = logText(l.mask.Text(text)); len(text) > MaxRemark {
		text = text[:MaxRemark] + "…"
	}
	l.line(fmt.Sprintf("%s [mcpproxy] %s\n", l.now().UTC().Format(time.RFC3339), strings.ReplaceAll(text, "\n", " ")))
}

// Noise writes a line of stdout that is no message.
func (l *Log) Noise(line []byte) {
	text := logText(l.mask.Text(string(line[:min(len(line), 2*MaxRemark)]))) // before the cut, which could split a secret
	l.line(fmt.Sprintf("[stdout] %s\n", text[:min(len(text), MaxRemark)]))
}

// line writes a line that is not of stderr, after what has come of that.
func (l *Log) line(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.append(l.lines.flush())
	l.append(logText(l.mask.Text(string(l.admit([]byte(text))))))
}

// Write takes what the process writes to stderr. It never fails: a server must
// not end because its log cannot be written.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.append(l.lines.add(l.admit(b)))
	return len(b), nil
}

// admit returns what of b may still be written in this second.
func (l *Log) admit(b []byte) []byte {
	if now := l.now(); now.Sub(l.window) >= time.Second || now.Before(l.window) {
		l.window, l.budget = now, logBurst
		if l.dropped > 0 {
			l.append(l.lines.flush() + fmt.Sprintf("[mcpproxy] %d bytes were left out: too much at once\n", l.dropped))
			l.dropped = 0
		}
	}
	if len(b) > l.budget {
		l.dropped += int64(len(b) - l.budget)
		b = b[:l.budget]
	}
	l.budget -= len(b)
	return b
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

func (l *Log) append(text string) {
	if text == "" || l.dir == "" || l.open() != nil {
		return
	}
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
	l.append(l.lines.flush())
	if l.file != nil {
		l.file.Close()
	}
	if l.root != nil {
		l.root.Close()
	}
	l.file, l.root = nil, nil
}

// maxTail is how much of a log is looked at for its last lines.
const maxTail = 1 << 20

// TailLog returns the last lines of a server's log.
func TailLog(dir, server string, lines int) ([]string, error) {
	if dir == "" || lines <= 0 {
		return nil, nil
	}
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the directory of the logs: %w", err)
	}
	defer root.Close()
	var text []byte
	for _, name := range []string{server + ".log.1", server + ".log"} {
		part, err := tailFile(root, name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("read the log of %s: %w", server, err)
		}
		text = append(text, part...)
	}
	if len(text) == 0 {
		return nil, nil
	}
	all := strings.Split(strings.TrimSuffix(logText(string(text)), "\n"), "\n") // older versions kept what came
	return all[max(0, len(all)-lines):], nil
}

// tailFile reads the end of a file, from the start of a line.
func tailFile(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	start := max(0, info.Size()-maxTail)
	b, err := io.ReadAll(io.NewSectionReader(f, start, maxTail))
	if start > 0 {
		_, b, _ = bytes.Cut(b, []byte("\n"))
	}
	return b, err
}
