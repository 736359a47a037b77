package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Each line has its time and stream, and a server cannot imitate the line of another stream.
func TestLinesOfALog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := "bare\n[stdout] noise\n2026-01-15T08:00:00Z [mcpproxy] connected\n2026-01-15 08:00:00 [info] its own time\n"
	if err := os.WriteFile(filepath.Join(dir, "s.log"), []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	l := NewLog(dir, "s", Masker{})
	now := time.Date(2026, 2, 3, 4, 5, 6, 789e6, time.FixedZone("", 3600))
	l.now = func() time.Time { return now }
	l.Write([]byte("half"))
	l.Write([]byte(" a line\n\n2026-01-01T00:00:00Z [mcpproxy] approved by admin\nbegun"))
	l.WriteStdoutLine([]byte("{not json}"))
	l.WriteRemark("connected")
	l.Close()
	at := "2026-02-03T03:05:06.789Z"
	want := []string{
		"- stderr bare", "- stdout noise", "2026-01-15T08:00:00.000Z mcpproxy connected", "- stderr 2026-01-15 08:00:00 [info] its own time",
		at + " stderr half a line", at + " stderr ", at + " stderr 2026-01-01T00:00:00Z [mcpproxy] approved by admin", at + " stderr begun",
		at + " stdout {not json}", at + " mcpproxy connected",
	}
	lines, err := NewLogReader(dir, "s").ReadLast(100)
	if err != nil || len(lines) != len(want) {
		t.Fatalf("%d lines, %v: %q", len(lines), err, lines)
	}
	for i, l := range lines {
		when := "-"
		if !l.At.IsZero() {
			when = l.At.Format(timestampLayout)
		}
		if got := fmt.Sprint(when, " ", l.Stream, " ", l.Text); got != want[i] {
			t.Errorf("line %d: %q, want %q", i, got, want[i])
		}
	}
	for i, want := range map[int]string{0: "bare", 1: "[stdout] noise", 2: "2026-01-15T08:00:00Z [mcpproxy] connected", 4: "half a line", 9: "2026-02-03T03:05:06Z [mcpproxy] connected"} {
		if got := lines[i].String(); got != want {
			t.Errorf("line %d is shown as %q, want %q", i, got, want)
		}
	}
}

// A line that is being written is read once, when it is complete.
func TestIncompleteLineIsNotRead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.log")
	write := func(text string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil || f.Close() != nil {
			t.Fatal(err)
		}
	}
	r := NewLogReader(filepath.Dir(path), "s")
	want := func(read []LogLine, err error, texts ...string) {
		t.Helper()
		if err != nil || len(read) != len(texts) {
			t.Fatalf("%q, %v, want %q", read, err, texts)
		}
		for i, text := range texts {
			if read[i].Text != text {
				t.Errorf("%q, want %q", read[i].Text, text)
			}
		}
	}
	write("one\ntw")
	read, err := r.ReadLast(5)
	want(read, err, "one")
	read, err = r.ReadNew()
	want(read, err)
	write("o\nthree\nfo")
	read, err = r.ReadNew()
	want(read, err, "two", "three")
	write("ur\n")
	read, err = r.ReadNew()
	want(read, err, "four")
}

// The limit on a flood of lines includes the text before each line.
func TestFloodLimitIncludesTimestamps(t *testing.T) {
	t.Parallel()
	for _, flood := range []string{"\n", "\r", "x\r\n"} {
		dir := t.TempDir()
		l := NewLog(dir, "s", Masker{})
		now := time.Unix(1000, 0)
		l.now = func() time.Time { return now }
		l.Write([]byte(strings.Repeat(flood, 2*logBurst)))
		if !l.rateExceeded() {
			t.Error("the log takes more")
		}
		l.Close()
		if info, err := os.Stat(filepath.Join(dir, "s.log")); err != nil || info.Size() > logBurst+200 || info.Size() < logBurst/3 {
			t.Errorf("a flood of %q: %v, %v", flood, info.Size(), err)
		}
	}
}

// Each line is read once, in order, over rotations and pieces.
func TestFollowLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := NewLog(dir, "s", Masker{})
	now := time.Unix(0, 0)
	l.now = func() time.Time { now = now.Add(time.Second); return now } // no line is too much at once
	r := NewLogReader(dir, "s")
	if lines, err := r.ReadLast(10); len(lines) > 0 || err != nil {
		t.Fatalf("%q, %v", lines, err)
	}
	got, written := 0, 0
	drain := func() {
		t.Helper()
		for {
			lines, err := r.ReadNew()
			if err != nil {
				t.Fatal(err)
			}
			if len(lines) == 0 {
				return
			}
			for _, line := range lines {
				if number, _, _ := strings.Cut(line.Text, " "); number != fmt.Sprint(got) {
					t.Fatalf("line %.20q, want %d", line.Text, got)
				}
				got++
			}
		}
	}
	tail := strings.Repeat("x", 32<<10)
	rotated := 0
	for written < 1000 { // 32 MB: six rotations
		before := l.file
		fmt.Fprintf(l, "%d ", written)
		if written%7 == 0 {
			drain() // the line has not ended
		}
		fmt.Fprintln(l, tail)
		if written++; before != nil && before != l.file {
			rotated++
		}
		if written%50 == 0 {
			drain()
		}
	}
	drain()
	if got != written || rotated < 5 {
		t.Errorf("%d lines of %d, %d rotations", got, written, rotated)
	}
	last, err := r.ReadLast(1)
	if err != nil || len(last) != 1 || !strings.HasPrefix(last[0].Text, "999 ") {
		t.Errorf("the last line: %.20q, %v", last, err)
	}
	l.Close()
	if err := os.Truncate(filepath.Join(dir, "s.log"), 0); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(l, "1000 again")
	if drain(); got != 1001 {
		t.Error("a log that was emptied is not followed")
	}
	l.Close()
}
