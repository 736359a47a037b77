package activity

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/ondisk"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/faultfs"
	"mcpproxy/internal/testutil/volume"
)

func mounted(t *testing.T, m *faultfs.Mount, err error) *faultfs.Mount {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// dieOf ends a log as kill -9 ends its process: what it had open is closed, and
// nothing else is done.
func dieOf(t *testing.T, l *Log) {
	t.Helper()
	l.stop()
	<-l.progress.ended
	l.watching.Wait()
	s := l.spool
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if err := s.lock.Close(); err != nil {
		t.Error(err)
	}
	if err := s.recent.close(false); err != nil {
		t.Error(err)
	}
	if m, ok := s.file.(*mappedFile); ok {
		if err := m.unmap(); err != nil {
			t.Error(err)
		}
		m.f.Close() // of a file system that may be dead
	}
}

// within tries until it works.
func within(t *testing.T, what string, try func() error) {
	t.Helper()
	deadline, tick := time.Now().Add(patience), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
		<-tick.C
	}
}

// refusesCalls tries calls until one is refused, and returns those that were made.
func refusesCalls(t *testing.T, l *Log) (made []string) {
	t.Helper()
	within(t, "calls are refused", func() error {
		r := Record{Type: ToolCall, ToolName: "late"}
		if err := l.Begin(&r); err != nil {
			wantCode(t, err, problem.AuditUnavailable)
			return nil
		}
		if err := l.End(r.ID, Outcome{Status: Success}); err != nil {
			return err
		}
		made = append(made, r.ID)
		return fmt.Errorf("%d calls were made", len(made))
	})
	return made
}

// unlessRefused makes a call, which may be refused.
func unlessRefused(t *testing.T, l *Log) (made []string) {
	t.Helper()
	r := Record{Type: ToolCall, ToolName: "unnoticed"}
	if err := l.Begin(&r); err != nil {
		wantCode(t, err, problem.AuditUnavailable)
		return nil
	}
	if err := l.End(r.ID, Outcome{Status: Success}); err != nil {
		t.Logf("the outcome waits: %v", err)
	}
	return []string{r.ID}
}

func takesCalls(t *testing.T, l *Log) (id string) {
	t.Helper()
	within(t, "calls are taken again", func() error {
		r := Record{Type: ToolCall, ToolName: "after"}
		if err := l.Begin(&r); err != nil {
			return err
		}
		id = r.ID
		return l.End(r.ID, Outcome{Status: Success})
	})
	return id
}

// wantAll wants that each of these is there once, a success, and nothing is
// wrong with the chain or told to be damaged.
func wantAll(t *testing.T, l *Log, ids []string) {
	t.Helper()
	seen := map[string]Status{}
	for _, r := range list(t, l) {
		if _, twice := seen[r.ID]; twice {
			t.Errorf("%s is there twice", r.ID)
		}
		seen[r.ID] = r.Status
		if strings.Contains(r.Metadata.Action, "damaged") {
			t.Errorf("told: %s", r.ErrorMessage)
		}
	}
	missing := 0
	for _, id := range ids {
		if seen[id] != Success {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d calls are not there as successes", missing, len(ids))
	}
	if v := verify(t, l.spool); v.Break != "" {
		t.Errorf("%+v", v)
	}
}

// TestADyingFileSystemIsNoticed: the mapping can be written to when its disk is
// dead. Calls are refused within a look, and those that were acknowledged before
// are there after the process was killed and the disk put in order.
func TestADyingFileSystemIsNoticed(t *testing.T) {
	faultfs.SkipUnlessAvailable(t)
	for name, die := range map[string]func(*faultfs.Mount) error{
		"read-only": (*faultfs.Mount).MakeReadOnly, "EIO": (*faultfs.Mount).FailWithEIO,
	} {
		t.Run(name, func(t *testing.T) {
			disk, err := faultfs.MountExt4(filepath.Join(t.TempDir(), "disk"), 32<<20)
			mounted(t, disk, err)
			opt, st := Options{Dir: filepath.Join(disk.Dir, "spool"), RecentDir: MemoryDir()}, &memory{}
			var made []string
			for round := range 2 {
				l := openLog2(t, opt, st)
				for range 50 {
					made = append(made, call(t, l, "before").ID)
				}
				running := Record{Type: ToolCall}
				if err := l.Begin(&running); err != nil {
					t.Fatal(err)
				}
				if err := die(disk); err != nil {
					t.Fatal(err)
				}
				made = append(made, refusesCalls(t, l)...)
				if h := l.Health(); !h.Degraded || !strings.Contains(h.Message, "refused") {
					t.Errorf("round %d: health: %+v", round, h)
				}
				if err := l.End(running.ID, Outcome{Status: Success}); err != nil {
					t.Logf("the outcome waits: %v", err)
				}
				made = append(made, running.ID)
				dieOf(t, l)
				if err := disk.UnmountAndRepair(); err != nil {
					t.Fatal(err)
				}
			}
			wantAll(t, openLog(t, opt, &memory{}), made)
		})
	}
}

// openLog2 opens a log that the test ends by itself.
func openLog2(t *testing.T, opt Options, st Store) *Log {
	t.Helper()
	l, err := Open(opt, st)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestADeadFileSystemThatComesBack needs no restart: what was acknowledged is
// written again.
func TestADeadFileSystemThatComesBack(t *testing.T) {
	faultfs.SkipUnlessAvailable(t)
	disk, err := faultfs.MountExt4(filepath.Join(t.TempDir(), "disk"), 32<<20)
	mounted(t, disk, err)
	opt, st := Options{Dir: filepath.Join(disk.Dir, "spool"), RecentDir: MemoryDir()}, &memory{}
	l := openLog2(t, opt, st)
	made := []string{call(t, l, "before").ID}
	if err := disk.MakeReadOnly(); err != nil {
		t.Fatal(err)
	}
	made = append(made, refusesCalls(t, l)...)
	if err := disk.UnmountAndRepair(); err != nil {
		t.Fatal(err)
	}
	made = append(made, takesCalls(t, l))
	if h := l.Health(); h.Degraded {
		t.Errorf("health: %+v", h)
	}
	list(t, l) // the store is in the middle of what was written twice
	dieOf(t, l)
	l = openLog(t, opt, st)
	wantAll(t, l, made)
	closeLog(t, l)
	wantAll(t, openLog(t, opt, &memory{}), made)
}

// TestADeletedSpoolIsMadeAgain: the file, and the folder, each while it is in
// use, and with a kill at once or later.
func TestADeletedSpoolIsMadeAgain(t *testing.T) {
	for _, what := range []string{"file", "folder"} {
		for _, kill := range []string{"at once", "later"} {
			t.Run(what+", killed "+kill, func(t *testing.T) {
				opt, st := Options{Dir: filepath.Join(t.TempDir(), "spool"), RecentDir: MemoryDir()}, &memory{}
				l := openLog2(t, opt, st)
				var made []string
				for range 50 {
					made = append(made, call(t, l, "before").ID)
				}
				gone := opt.Dir
				if what == "file" {
					gone = l.spool.mark().segments[0].path
				}
				if err := faultfs.RemoveAllWithRetry(gone); err != nil {
					t.Fatal(err)
				}
				for range 50 {
					made = append(made, unlessRefused(t, l)...)
				}
				if kill == "later" {
					within(t, "the spool is there again", func() error {
						if there, _ := filepath.Glob(filepath.Join(opt.Dir, "*"+segmentSuffix)); len(there) == 0 {
							return errors.New("there is none")
						}
						return nil
					})
					made = append(made, takesCalls(t, l))
				}
				dieOf(t, l)
				wantAll(t, openLog(t, opt, st), made)
			})
		}
	}
}

// TestRoomForTheEndIsReserved: on a full disk no call begins whose outcome might
// find no room, and what has begun ends, with its response cut.
func TestRoomForTheEndIsReserved(t *testing.T) {
	volume.SkipUnderRace(t)
	faultfs.SkipUnlessAvailable(t)
	for _, durability := range []string{"process", DurabilityPower} {
		t.Run(durability, func(t *testing.T) {
			disk, err := faultfs.MountTmpfs(filepath.Join(t.TempDir(), "disk"), 4<<20)
			mounted(t, disk, err)
			opt, st := Options{Dir: filepath.Join(disk.Dir, "spool"), Durability: durability}, &memory{}
			l := openLog2(t, opt, st)
			var open []string
			filled := false
			for len(open) < 5000 {
				r := Record{Type: ToolCall, Arguments: []byte(`"` + strings.Repeat("x", 500) + `"`)}
				if err := l.Begin(&r); err != nil {
					wantCode(t, err, problem.AuditUnavailable)
					break
				}
				open = append(open, r.ID)
				if len(open) == 100 {
					if err := disk.FillUp(); err != nil {
						t.Fatal(err)
					}
					filled = true
				}
			}
			if !filled || len(open) == 5000 {
				t.Fatalf("%d calls began on a full disk", len(open))
			}
			response := []byte(`"` + strings.Repeat("y", 3000) + `"`)
			for _, id := range open {
				if err := l.End(id, Outcome{Status: Success, Response: response, ResponseBytes: 3002}); err != nil {
					t.Fatalf("an outcome was not written: %v", err)
				}
			}
			dieOf(t, l)
			l = openLog(t, opt, &memory{})
			got := 0
			for _, r := range listAll(t, l) {
				if r.Type == ToolCall && r.Status != Success {
					t.Fatalf("%+v", r)
				}
				if r.ResponseTruncated != (len(r.Response) == 0) || r.ResponseBytes != 3002 {
					t.Fatalf("%+v", r)
				}
				got++
			}
			if got != len(open) {
				t.Errorf("%d of %d calls are there", got, len(open))
			}
		})
	}
}

func listAll(t *testing.T, l *Log) []Record {
	t.Helper()
	page, err := l.List(t.Context(), Filter{Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return page.Records
}

// TestAFullDiskComesBack needs no restart.
func TestAFullDiskComesBack(t *testing.T) {
	faultfs.SkipUnlessAvailable(t)
	disk, err := faultfs.MountTmpfs(filepath.Join(t.TempDir(), "disk"), 4<<20)
	mounted(t, disk, err)
	l := openLog(t, Options{Dir: filepath.Join(disk.Dir, "spool")}, &memory{})
	call(t, l, "before")
	if err := disk.FillUp(); err != nil {
		t.Fatal(err)
	}
	refusesCalls(t, l)
	if h := l.Health(); !h.Degraded {
		t.Errorf("health: %+v", h)
	}
	if err := disk.RemoveFiller(); err != nil {
		t.Fatal(err)
	}
	within(t, "the log is well, though nobody calls", func() error {
		if h := l.Health(); h.Degraded {
			return fmt.Errorf("%+v", h)
		}
		return nil
	})
	call(t, l, "after")
}

// TestAHoleThatADiskLeft: a disk that died may have what was written last, but not
// all that was written before.
func TestAHoleThatADiskLeft(t *testing.T) {
	opt := Options{Dir: filepath.Join(t.TempDir(), "spool"), RecentDir: MemoryDir(), lookEvery: time.Hour}
	if opt.RecentDir == "" {
		t.Skip("there is no folder in memory here")
	}
	l := openLog2(t, opt, &memory{})
	made := []string{call(t, l, "first").ID}
	for range 300 {
		made = append(made, call(t, l, "a").ID)
	}
	path := l.spool.mark().segments[0].path
	dieOf(t, l)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[20_000:60_000])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	wantAll(t, openLog(t, opt, &memory{}), made)
}

// TestAHoleBetweenSegments: what one segment has lost is taken from the second
// copy, and what the segments behind it have still counts, also after new calls
// and another kill.
func TestAHoleBetweenSegments(t *testing.T) {
	if MemoryDir() == "" {
		t.Skip("there is no folder in memory here")
	}
	const lost = 20 // in the segment that is damaged
	for name, damage := range map[string]func(path string, lines [][]byte) error{
		"the end is lost": func(path string, lines [][]byte) error {
			return os.WriteFile(path, bytes.Join(lines[:len(lines)-lost], nil), 0o600)
		},
		"the end is garbage": func(path string, lines [][]byte) error {
			clear(lines[len(lines)-lost])
			return os.WriteFile(path, bytes.Join(lines, nil), 0o600)
		},
		"the header is garbage": func(path string, lines [][]byte) error {
			clear(lines[0])
			return os.WriteFile(path, bytes.Join(lines, nil), 0o600)
		},
		"the segment is lost": func(path string, _ [][]byte) error { return os.Remove(path) },
	} {
		t.Run(name, func(t *testing.T) {
			opt := Options{
				Dir: filepath.Join(t.TempDir(), "spool"), RecentDir: MemoryDir(), lookEvery: time.Hour,
				maxSegment: 32 << 10,
			}
			away := &memory{fail: errors.New("away")} // so nothing is removed
			l := openLog2(t, opt, away)
			var made []string
			for range 500 {
				made = append(made, call(t, l, "before").ID)
			}
			segments := l.spool.mark().segments
			if len(segments) < 4 {
				t.Fatalf("there are %d segments only", len(segments))
			}
			dieOf(t, l)
			seg := segments[len(segments)/2]
			data, err := os.ReadFile(seg.path)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(seg.path, bytes.SplitAfter(bytes.TrimRight(data, "\x00"), []byte{'\n'})); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				l = openLog2(t, opt, away)
				for range 50 {
					made = append(made, call(t, l, "after").ID)
				}
				dieOf(t, l)
			}
			wantAll(t, openLog(t, opt, &memory{}), made)
		})
	}
}

// TestADiskThatIsTakenAwayForAWhile: the spool goes on in the empty folder below,
// and where it was when the disk is back. A database that came back with the disk
// lacks the last moments, and gets them.
func TestADiskThatIsTakenAwayForAWhile(t *testing.T) {
	faultfs.SkipUnlessAvailable(t)
	disk, err := faultfs.MountExt4(filepath.Join(t.TempDir(), "disk"), 32<<20)
	mounted(t, disk, err)
	opt, st := Options{Dir: filepath.Join(disk.Dir, "spool"), RecentDir: MemoryDir()}, &memory{}
	l := openLog2(t, opt, st)
	var made []string
	for range 500 { // more than memory keeps
		made = append(made, call(t, l, "before").ID)
	}
	list(t, l)
	within(t, "all is on the disk", func() error {
		l.spool.mu.Lock()
		defer l.spool.mu.Unlock()
		if l.spool.good != l.spool.durable {
			return fmt.Errorf("up to %d of %d", l.spool.good.seq, l.spool.durable.seq)
		}
		return nil
	})
	if err := disk.UnmountInUse(); err != nil {
		t.Fatal(err)
	}
	within(t, "the spool goes on elsewhere", func() error {
		_, err := os.Stat(opt.Dir)
		return err
	})
	made = append(made, takesCalls(t, l))
	list(t, l)
	st.setFail(fmt.Errorf("%w: gone", ErrIO))
	made = append(made, call(t, l, "waits").ID)
	if _, err := l.List(t.Context(), Filter{}); err == nil && !l.Health().Degraded {
		t.Error("the store did not fail")
	}
	st.forget() // what comes back has nothing of it
	if err := disk.CheckAndRemount(); err != nil {
		t.Fatal(err)
	}
	within(t, "the spool is where it was", func() error {
		l.spool.mu.Lock()
		defer l.spool.mu.Unlock()
		if ok, err := ondisk.Named(filepath.Join(opt.Dir, "lock"), l.spool.lock); err != nil || !ok {
			return fmt.Errorf("not yet: %v", err)
		}
		return nil
	})
	st.setFail(nil)
	made = append(made, takesCalls(t, l))
	within(t, "the store takes records again", l.progress.failure)
	wantAll(t, l, made)
	dieOf(t, l)
	wantAll(t, openLog(t, opt, &memory{}), made)
}

// forget makes the store one that has nothing.
func (m *memory) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows, m.pos = nil, Position{}
}

// TestASecondCopyThatIsDeletedIsBegunAgain: the end of a user's session clears
// its folder.
func TestASecondCopyThatIsDeletedIsBegunAgain(t *testing.T) {
	opt, st := Options{Dir: filepath.Join(t.TempDir(), "spool"), RecentDir: MemoryDir()}, &memory{}
	if opt.RecentDir == "" {
		t.Skip("there is no folder in memory here")
	}
	l := openLog2(t, opt, st)
	path := l.spool.recent.file.Name()
	made := []string{call(t, l, "before").ID}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	within(t, "the copy is there again", func() error {
		_, err := os.Stat(path)
		return err
	})
	made = append(made, call(t, l, "after").ID)
	if err := faultfs.RemoveAllWithRetry(opt.Dir); err != nil {
		t.Fatal(err)
	}
	made = append(made, unlessRefused(t, l)...)
	dieOf(t, l)
	wantAll(t, openLog(t, opt, st), made)
}

// With power the folder is brought to the disk before a new segment counts: without that the
// segment could be gone after a loss of power, whatever was synced in it.
func TestANewSegmentNeedsItsFolder(t *testing.T) {
	faultfs.SkipUnlessAvailable(t)
	s := newSpool(t, t.TempDir())
	s.power = true
	if _, err := s.openSpool(); err != nil {
		t.Fatal(err)
	}
	defer s.close(true)
	i, err := faultfs.InjectSyscallFaults(os.Getpid(), "fsync:error=EIO", s.dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.append(&draft{kind: KindWhole, body: bodyOf([]byte(`"kind":"record","raw":[0,0],"type":"system"}`))})
	if stopped := i.Stop(); stopped != nil {
		t.Fatal(stopped)
	}
	if err == nil {
		t.Error("an entry is taken whose segment is in no folder on the disk")
	}
}
