//go:build unix

package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestServerLogRotates(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	l := NewLog(dir, "s", Masker{})
	now := time.Unix(0, 0)
	l.now = func() time.Time { now = now.Add(time.Second); return now }
	line := strings.Repeat("x", 1023) + "\n"
	for range 12 << 10 {
		l.Write([]byte(line))
	}
	l.Write([]byte("last\n"))
	l.Close()
	total := int64(0)
	for _, name := range []string{"s.log", "s.log.1"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Size() > maxLogFile || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, error %v", name, info, err)
		}
		total += info.Size()
	}
	if total < maxLogFile {
		t.Errorf("%d bytes are kept", total)
	}
	lines, err := NewLogReader(dir, "s").ReadLast(2)
	if err != nil || len(lines) != 2 || lines[1].Text != "last" || lines[0].Text != line[:len(line)-1] || lines[0].At.IsZero() {
		t.Errorf("tail %q, error %v", lines, err)
	}
}

func TestServerLogLimitsAFlood(t *testing.T) {
	dir := t.TempDir()
	l := NewLog(dir, "s", Masker{})
	now := time.Unix(1000, 0)
	l.now = func() time.Time { return now }
	for range 100 {
		l.Write(bytes.Repeat([]byte("flood line\n"), 10_000))
	}
	if !l.rateExceeded() {
		t.Error("the log takes more")
	}
	now = now.Add(time.Second)
	if l.Write([]byte("quiet again\n")); l.rateExceeded() {
		t.Error("the log takes no more")
	}
	l.Close()
	b, err := os.ReadFile(filepath.Join(dir, "s.log"))
	if err != nil || len(b) > logBurst+200 || !bytes.Contains(b, []byte("bytes were dropped")) || !bytes.HasSuffix(b, []byte("quiet again\n")) {
		t.Errorf("%d bytes, error %v", len(b), err)
	}
}

func TestTailLogWithoutALog(t *testing.T) {
	for _, dir := range []string{"", t.TempDir(), filepath.Join(t.TempDir(), "none")} {
		if lines, err := NewLogReader(dir, "s").ReadLast(10); len(lines) > 0 || err != nil {
			t.Errorf("%q: %q, error %v", dir, lines, err)
		}
	}
	if _, err := NewLogReader(t.TempDir(), "../../etc/passwd").ReadLast(10); err == nil {
		t.Error("it leaves its directory")
	}
}
