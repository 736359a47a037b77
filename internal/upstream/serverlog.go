package upstream

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

// serverLog is the log file of one server: what its process writes to stderr,
// what it writes to stdout that is no message, and our own remarks. It rotates
// by size into one older file and limits the rate, so that a flood fills
// neither the disk nor our time. Without a directory it drops everything.
//
// It is not lumberjack because that leaves a goroutine behind for each file.
type serverLog struct {
	dir  string
	name string // of the file
	now  func() time.Time
	mask masker // for what is not the process's own stderr

	mu      sync.Mutex // guards what follows
	root    *os.Root
	file    *os.File
	size    int64
	window  time.Time // start of the second that budget is for
	budget  int
	dropped int64
}

const (
	maxLogFile = 5 << 20
	logBurst   = 1 << 20 // bytes per second
)

func newServerLog(dir, server string, mask masker) *serverLog {
	return &serverLog{dir: dir, name: server + ".log", now: time.Now, mask: mask}
}

// remark writes a line of our own.
func (l *serverLog) remark(text string) {
	text = l.mask.text(text)
	if len(text) > maxRemarkText {
		text = text[:maxRemarkText] + "…"
	}
	l.Write(fmt.Appendf(nil, "%s [mcpproxy] %s\n", l.now().UTC().Format(time.RFC3339), strings.ReplaceAll(text, "\n", " ")))
}

// noise writes a line of stdout that is no message.
func (l *serverLog) noise(line []byte) {
	if len(line) > maxRemarkText {
		line = line[:maxRemarkText]
	}
	l.Write(fmt.Appendf(nil, "[stdout] %s\n", line))
}

// Write appends b as it is. It never fails: a server must not end because its
// log cannot be written.
func (l *serverLog) Write(b []byte) (int, error) {
	n := len(b)
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); now.Sub(l.window) >= time.Second || now.Before(l.window) {
		l.window, l.budget = now, logBurst
		if l.dropped > 0 {
			b = append(fmt.Appendf(nil, "[mcpproxy] %d bytes were left out: too much at once\n", l.dropped), b...)
			l.dropped = 0
		}
	}
	if len(b) > l.budget {
		l.dropped += int64(len(b) - l.budget)
		b = b[:l.budget]
	}
	l.budget -= len(b)
	l.append(b)
	return n, nil
}

// full says whether what comes is dropped until the next second.
func (l *serverLog) full() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.budget == 0
}

func (l *serverLog) append(b []byte) {
	if len(b) == 0 || l.dir == "" || l.open() != nil {
		return
	}
	if l.size+int64(len(b)) > maxLogFile && l.size > 0 {
		l.file.Close()
		l.file = nil
		if l.root.Rename(l.name, l.name+".1") != nil || l.open() != nil {
			return
		}
	}
	n, _ := l.file.Write(b)
	l.size += int64(n)
}

// open makes sure that there is a file.
func (l *serverLog) open() error {
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

func (l *serverLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
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

// tailLog gives the last lines of a server's log.
func tailLog(dir, server string, lines int) ([]string, error) {
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
	all := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(text) == 0 {
		return nil, nil
	}
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
