package store_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/store"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// crashDir is an environment variable. If it is set, the test binary writes records into this directory until it is
// killed.
const crashDir = "MCPPROXY_CRASH_DIR"

// crashClock is an environment variable. It contains a duration, by which the clock of that process jumps back and
// forth every few milliseconds.
const crashClock = "MCPPROXY_CRASH_CLOCK"

func runCrashing(dir string) error {
	opt := activity.Options{
		Dir: filepath.Join(dir, "spool"), Retention: func() activity.Retention { return activity.Retention{Days: 90} },
	}
	if far, err := time.ParseDuration(os.Getenv(crashClock)); err == nil {
		began := time.Now()
		opt.Now = func() time.Time {
			at := rand.New(rand.NewPCG(uint64(time.Since(began)/(5*time.Millisecond)), 1))
			return time.Now().Add(time.Duration(at.Int64N(2*int64(far))) - far)
		}
	}
	l, err := activity.Open(opt, store.OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil))
	if err != nil {
		return err
	}
	var mu sync.Mutex
	say := func(what, id string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Println(what, id)
	}
	for w := range 64 {
		go func() {
			for i := 0; ; i++ {
				r := activity.Record{Type: activity.ToolCall, ServerName: fmt.Sprint("writer-", w)}
				if err := l.Begin(&r); err != nil {
					say("failed", err.Error())
					return
				}
				say("begun", r.ID)
				if i%5 == 4 {
					continue // the process was killed before it ended
				}
				if err := l.End(r.ID, activity.Outcome{Status: activity.Success}); err != nil {
					say("failed", err.Error())
					return
				}
				say("ended", r.ID)
			}
		}()
	}
	select {}
}

// TestKill repeatedly kills a process with 64 writers. Every record that the process confirmed must exist, finished or
// interrupted.
func TestKill(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	killWriters(t)
}

// TestKillWhileTheClockJumps does the same while the clock jumps back and forth by up to a year. No record may be lost
// or pruned by age.
func TestKillWhileTheClockJumps(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	killWriters(t, crashClock+"=8760h")
}

func killWriters(t *testing.T, environ ...string) {
	dir := t.TempDir()
	begun, ended := map[string]bool{}, map[string]bool{}
	for round := range 4 {
		readUntilKilled(t, dir, 800*round, begun, ended, environ...) // the first kill happens while the process creates the database
	}
	db := store.OpenSQLite(filepath.Join(dir, "mcpproxy.db"), nil)
	opened := time.Now()
	l, err := activity.Open(activity.Options{Dir: filepath.Join(dir, "spool")}, db)
	if err != nil {
		t.Fatal(err)
	}
	statuses := allStatuses(t, l)
	t.Logf("%d calls begun, %d ended; %d recorded, readable after %v", len(begun), len(ended), len(statuses), time.Since(opened))
	for id := range begun {
		switch s := statuses[id]; {
		case ended[id] && s != activity.Success:
			t.Errorf("record %s had ended, but its status is %q", id, s)
		case s != activity.Success && s != activity.Interrupted:
			t.Errorf("record %s had begun, but its status is %q", id, s)
		}
	}
	store.CheckSpool(t, filepath.Join(dir, "spool"))
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	checkIntegrity(t, filepath.Join(dir, "mcpproxy.db"))
}

func readUntilKilled(t *testing.T, dir string, lines int, begun, ended map[string]bool, environ ...string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), crashDir+"="+dir), environ...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scanner := bufio.NewScanner(out)
	for n := 0; scanner.Scan(); n++ {
		if n == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		switch what, id, _ := strings.Cut(scanner.Text(), " "); what {
		case "begun":
			begun[id] = true
		case "ended":
			ended[id] = true
		default:
			t.Fatalf("the process wrote %q", scanner.Text())
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the process ended without a kill")
	}
}

func allStatuses(t *testing.T, l *activity.Log) map[string]activity.Status {
	t.Helper()
	statuses := map[string]activity.Status{}
	for f := (activity.Filter{Limit: 1000}); ; {
		ctx, cancel := context.WithTimeout(t.Context(), store.Patience)
		p, err := l.List(ctx, f)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Records {
			if statuses[r.ID] != "" {
				t.Errorf("record %s exists twice", r.ID)
			}
			statuses[r.ID] = r.Status
		}
		if f.Cursor = p.NextCursor; f.Cursor == "" {
			if int64(len(statuses)) != p.Total {
				t.Errorf("got %d records, total = %d", len(statuses), p.Total)
			}
			return statuses
		}
	}
}
