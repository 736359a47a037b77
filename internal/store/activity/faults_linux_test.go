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

func requireMount(t *testing.T, m *faultfs.Mount, err error) *faultfs.Mount {
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

// killLog simulates kill -9: it closes the open files of the log and does nothing else.
func killLog(t *testing.T, l *Log) {
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
		m.f.Close() // fails if the file system does
	}
}

// retryUntilDone calls try until it succeeds.
func retryUntilDone(t *testing.T, what string, try func() error) {
	t.Helper()
	deadline, tick := time.Now().Add(patience), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s did not succeed within %s: %v", what, patience, err)
		}
		<-tick.C
	}
}

// callUntilRefused makes calls until one is refused, and returns the IDs of the recorded calls.
func callUntilRefused(t *testing.T, l *Log) (made []string) {
	t.Helper()
	retryUntilDone(t, "calls are refused", func() error {
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

// tryCall makes one call, which may be refused.
func tryCall(t *testing.T, l *Log) (made []string) {
	t.Helper()
	r := Record{Type: ToolCall, ToolName: "unnoticed"}
	if err := l.Begin(&r); err != nil {
		wantCode(t, err, problem.AuditUnavailable)
		return nil
	}
	if err := l.End(r.ID, Outcome{Status: Success}); err != nil {
		t.Logf("the outcome is not written yet: %v", err)
	}
	return []string{r.ID}
}

func waitUntilCallsAccepted(t *testing.T, l *Log) (id string) {
	t.Helper()
	retryUntilDone(t, "calls are taken again", func() error {
		r := Record{Type: ToolCall, ToolName: "after"}
		if err := l.Begin(&r); err != nil {
			return err
		}
		id = r.ID
		return l.End(r.ID, Outcome{Status: Success})
	})
	return id
}

// wantEachOnce checks that each of these records exists exactly once, as a success, that the chain is verified, and
// that no damage is recorded.
func wantEachOnce(t *testing.T, l *Log, ids []string) {
	t.Helper()
	seen := map[string]Status{}
	for _, r := range listRecords(t, l) {
		if _, twice := seen[r.ID]; twice {
			t.Errorf("record %s exists twice", r.ID)
		}
		seen[r.ID] = r.Status
		if strings.Contains(r.Metadata.Action, "damaged") {
			t.Errorf("damage is recorded: %s", r.ErrorMessage)
		}
	}
	missing := 0
	for _, id := range ids {
		if seen[id] != Success {
			missing++
		}
	}
	if missing > 0 {
		t.Errorf("%d of %d calls are not recorded as successes", missing, len(ids))
	}
	if v := readAndVerify(t, l.spool); v.Break != "" {
		t.Errorf("%+v", v)
	}
}

// TestADyingFileSystemIsNoticed checks a disk that fails while a mapping of it can still be written to. The next check
// of the spool must refuse calls. After the process was killed and the disk was repaired, the acknowledged calls must
// exist.
func TestADyingFileSystemIsNoticed(t *testing.T) {
	t.Parallel()
	faultfs.SkipUnlessAvailable(t)
	for name, die := range map[string]func(*faultfs.Mount) error{
		"read-only": (*faultfs.Mount).MakeReadOnly, "EIO": (*faultfs.Mount).FailWithEIO,
	} {
		t.Run(name, func(t *testing.T) {
			disk, err := faultfs.MountExt4(filepath.Join(t.TempDir(), "disk"), 32<<20)
			requireMount(t, disk, err)
			opt, st := Options{Dir: filepath.Join(disk.Dir, "spool"), RecentDir: FindTmpfsDir()}, &memoryStore{}
			var made []string
			for round := range 2 {
				l := openUnmanagedLog(t, opt, st)
				for range 50 {
					made = append(made, recordCall(t, l, "before").ID)
				}
				running := Record{Type: ToolCall}
				if err := l.Begin(&running); err != nil {
					t.Fatal(err)
				}
				if err := die(disk); err != nil {
					t.Fatal(err)
				}
				made = append(made, callUntilRefused(t, l)...)
				if h := l.Health(); !h.Degraded || !strings.Contains(h.Message, "refused") {
					t.Errorf("round %d: health = %+v", round, h)
				}
				if err := l.End(running.ID, Outcome{Status: Success}); err != nil {
					t.Logf("the outcome is not written yet: %v", err)
				}
				made = append(made, running.ID)
				killLog(t, l)
				if err := disk.UnmountAndRepair(); err != nil {
					t.Fatal(err)
				}
			}
			wantEachOnce(t, openLog(t, opt, &memoryStore{}), made)
		})
	}
}

// openUnmanagedLog opens a log that the test must close itself.
func openUnmanagedLog(t *testing.T, opt Options, st Store) *Log {
	t.Helper()
	l, err := Open(opt, st)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestFileSystemRecovers checks that the log works again after the file system was repaired, without a restart, and
// that acknowledged entries are written again.
func TestFileSystemRecovers(t *testing.T) {
	t.Parallel()
	faultfs.SkipUnlessAvailable(t)
	disk, err := faultfs.MountExt4(filepath.Join(t.TempDir(), "disk"), 32<<20)
	requireMount(t, disk, err)
	opt, st := Options{Dir: filepath.Join(disk.Dir, "spool"), RecentDir: FindTmpfsDir()}, &memoryStore{}
	l := openUnmanagedLog(t, opt, st)
	made := []string{recordCall(t, l, "before").ID}
	if err := disk.MakeReadOnly(); err != nil {
		t.Fatal(err)
	}
	made = append(made, callUntilRefused(t, l)...)
	if err := disk.UnmountAndRepair(); err != nil {
		t.Fatal(err)
	}
	made = append(made, waitUntilCallsAccepted(t, l))
	if h := l.Health(); h.Degraded {
		t.Errorf("health = %+v", h)
	}
	listRecords(t, l) // the store reads the entries that were written again
	killLog(t, l)
	l = openLog(t, opt, st)
	wantEachOnce(t, l, made)
	closeLog(t, l)
	wantEachOnce(t, openLog(t, opt, &memoryStore{}), made)
}

// TestDeletedSpoolIsRecreated deletes the file or the directory of the spool while it is in use. It kills the log
// immediately or later.
func TestDeletedSpoolIsRecreated(t *testing.T) {
	for _, what := range []string{"file", "folder"} {
		for _, kill := range []string{"at once", "later"} {
			t.Run(what+", killed "+kill, func(t *testing.T) {
				opt, st := Options{Dir: filepath.Join(t.TempDir(), "spool"), RecentDir: FindTmpfsDir()}, &memoryStore{}
				l := openUnmanagedLog(t, opt, st)
				var made []string
				for range 50 {
					made = append(made, recordCall(t, l, "before").ID)
				}
				gone := opt.Dir
				if what == "file" {
					gone = l.spool.snapshot().segments[0].path
				}
				if err := faultfs.RemoveAllWithRetry(gone); err != nil {
					t.Fatal(err)
				}
				for range 50 {
					made = append(made, tryCall(t, l)...)
				}
				if kill == "later" {
					retryUntilDone(t, "the spool is there again", func() error {
						if there, _ := filepath.Glob(filepath.Join(opt.Dir, "*"+segmentSuffix)); len(there) == 0 {
							return errors.New("there is none")
						}
						return nil
					})
					made = append(made, waitUntilCallsAccepted(t, l))
				}
				killLog(t, l)
				wantEachOnce(t, openLog(t, opt, st), made)
			})
		}
	}
}

// TestRoomForTheEndIsReserved checks that on a full disk, a call does not begin if there might be no room for its
// outcome. A call that has begun can end, but its response is not stored.
func TestRoomForTheEndIsReserved(t *testing.T) {
	volume.SkipUnderRace(t)
	faultfs.SkipUnlessAvailable(t)
	for _, durability := range []string{"process", DurabilityPower} {
		t.Run(durability, func(t *testing.T) {
			disk, err := faultfs.MountTmpfs(filepath.Join(t.TempDir(), "disk"), 4<<20)
			requireMount(t, disk, err)
			opt, st := Options{Dir: filepath.Join(disk.Dir, "spool"), Durability: durability}, &memoryStore{}
			l := openUnmanagedLog(t, opt, st)
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
					t.Fatalf("an outcome could not be written: %v", err)
				}
			}
			killLog(t, l)
			l = openLog(t, opt, &memoryStore{})
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
				t.Errorf("%d of %d calls exist", got, len(open))
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

// TestFullDiskRecovers checks that the log works again after the disk has free space, without a restart.
func TestFullDiskRecovers(t *testing.T) {
	t.Parallel()
	faultfs.SkipUnlessAvailable(t)
	disk, err := faultfs.MountTmpfs(filepath.Join(t.TempDir(), "disk"), 4<<20)
	requireMount(t, disk, err)
	l := openLog(t, Options{Dir: filepath.Join(disk.Dir, "spool")}, &memoryStore{})
	recordCall(t, l, "before")
	if err := disk.FillUp(); err != nil {
		t.Fatal(err)
	}
	callUntilRefused(t, l)
	if h := l.Health(); !h.Degraded {
		t.Errorf("health = %+v", h)
	}
	if err := disk.RemoveFiller(); err != nil {
		t.Fatal(err)
	}
	retryUntilDone(t, "the log is well, though nobody calls", func() error {
		if h := l.Health(); h.Degraded {
			return fmt.Errorf("%+v", h)
		}
		return nil
	})
	recordCall(t, l, "after")
}

// TestAHoleThatADiskLeft simulates a failed disk that has stored the newest bytes but not all older ones.
func TestAHoleThatADiskLeft(t *testing.T) {
	opt := Options{Dir: filepath.Join(t.TempDir(), "spool"), RecentDir: FindTmpfsDir(), checkEvery: time.Hour}
	if opt.RecentDir == "" {
		t.Skip("this system has no directory in memory")
	}
	l := openUnmanagedLog(t, opt, &memoryStore{})
	made := []string{recordCall(t, l, "first").ID}
	for range 300 {
		made = append(made, recordCall(t, l, "a").ID)
	}
	path := l.spool.snapshot().segments[0].path
	killLog(t, l)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[20_000:60_000])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	wantEachOnce(t, openLog(t, opt, &memoryStore{}), made)
}

// TestAHoleBetweenSegments checks that the entries that one segment lost are restored from the second copy, and that
// the entries of later segments still exist, also after new calls and another kill.
func TestAHoleBetweenSegments(t *testing.T) {
	if FindTmpfsDir() == "" {
		t.Skip("this system has no directory in memory")
	}
	const lost = 20 // number of lost entries in the damaged segment
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
				Dir: filepath.Join(t.TempDir(), "spool"), RecentDir: FindTmpfsDir(), checkEvery: time.Hour,
				maxSegment: 32 << 10,
			}
			away := &memoryStore{fail: errors.New("away")} // the store fails, so no segment is removed
			l := openUnmanagedLog(t, opt, away)
			var made []string
			for range 500 {
				made = append(made, recordCall(t, l, "before").ID)
			}
			segments := l.spool.snapshot().segments
			if len(segments) < 4 {
				t.Fatalf("got only %d segments", len(segments))
			}
			killLog(t, l)
			seg := segments[len(segments)/2]
			data, err := os.ReadFile(seg.path)
			if err != nil {
				t.Fatal(err)
			}
			if err := damage(seg.path, bytes.SplitAfter(bytes.TrimRight(data, "\x00"), []byte{'\n'})); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				l = openUnmanagedLog(t, opt, away)
				for range 50 {
					made = append(made, recordCall(t, l, "after").ID)
				}
				killLog(t, l)
			}
			wantEachOnce(t, openLog(t, opt, &memoryStore{}), made)
		})
	}
}

// TestTemporarilyMissingDisk checks that the spool continues in the empty directory below the mount point while the
// disk is missing, and on the disk when it is back. The database on that disk then lacks the newest records, and must
// receive them.
func TestTemporarilyMissingDisk(t *testing.T) {
	t.Parallel()
	faultfs.SkipUnlessAvailable(t)
	disk, err := faultfs.MountExt4(filepath.Join(t.TempDir(), "disk"), 32<<20)
	requireMount(t, disk, err)
	opt, st := Options{Dir: filepath.Join(disk.Dir, "spool"), RecentDir: FindTmpfsDir()}, &memoryStore{}
	l := openUnmanagedLog(t, opt, st)
	var made []string
	for range 500 { // more records than fit in memory
		made = append(made, recordCall(t, l, "before").ID)
	}
	listRecords(t, l)
	retryUntilDone(t, "all is on the disk", func() error {
		l.spool.mu.Lock()
		defer l.spool.mu.Unlock()
		if l.spool.synced != l.spool.durable {
			return fmt.Errorf("up to %d of %d", l.spool.synced.seq, l.spool.durable.seq)
		}
		return nil
	})
	if err := disk.UnmountInUse(); err != nil {
		t.Fatal(err)
	}
	retryUntilDone(t, "the spool goes on elsewhere", func() error {
		_, err := os.Stat(opt.Dir)
		return err
	})
	made = append(made, waitUntilCallsAccepted(t, l))
	listRecords(t, l)
	st.setFail(fmt.Errorf("%w: gone", ErrIO))
	made = append(made, recordCall(t, l, "waits").ID)
	if _, err := l.List(t.Context(), Filter{}); err == nil && !l.Health().Degraded {
		t.Error("the store did not fail")
	}
	st.forget() // the disk returns with an empty database
	if err := disk.CheckAndRemount(); err != nil {
		t.Fatal(err)
	}
	retryUntilDone(t, "the spool is where it was", func() error {
		l.spool.mu.Lock()
		defer l.spool.mu.Unlock()
		if ok, err := ondisk.IsFileStillAtPath(filepath.Join(opt.Dir, "lock"), l.spool.lock.File); err != nil || !ok {
			return fmt.Errorf("not yet: %v", err)
		}
		return nil
	})
	st.setFail(nil)
	made = append(made, waitUntilCallsAccepted(t, l))
	retryUntilDone(t, "the store takes records again", l.progress.storeError)
	wantEachOnce(t, l, made)
	killLog(t, l)
	wantEachOnce(t, openLog(t, opt, &memoryStore{}), made)
}

// forget deletes all data of the store.
func (m *memoryStore) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows, m.pos = nil, SpoolPosition{}
}

// TestDeletedSecondCopyIsRecreated deletes the second copy, as the end of a user's login session does.
func TestDeletedSecondCopyIsRecreated(t *testing.T) {
	opt, st := Options{Dir: filepath.Join(t.TempDir(), "spool"), RecentDir: FindTmpfsDir()}, &memoryStore{}
	if opt.RecentDir == "" {
		t.Skip("this system has no directory in memory")
	}
	l := openUnmanagedLog(t, opt, st)
	path := l.spool.recent.file.Name()
	made := []string{recordCall(t, l, "before").ID}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	retryUntilDone(t, "the copy is there again", func() error {
		_, err := os.Stat(path)
		return err
	})
	made = append(made, recordCall(t, l, "after").ID)
	if err := faultfs.RemoveAllWithRetry(opt.Dir); err != nil {
		t.Fatal(err)
	}
	made = append(made, tryCall(t, l)...)
	killLog(t, l)
	wantEachOnce(t, openLog(t, opt, st), made)
}

// TestANewSegmentNeedsItsFolder checks that with durability "power", the directory is synced before entries in a new
// segment are acknowledged. Otherwise a loss of power could remove the segment, even if its content was synced.
func TestANewSegmentNeedsItsFolder(t *testing.T) {
	faultfs.SkipUnlessAvailable(t)
	s := newSpool(t, t.TempDir())
	s.syncEachWrite = true
	if _, err := s.openSpool(); err != nil {
		t.Fatal(err)
	}
	defer s.close(true)
	i, err := faultfs.InjectSyscallFaults(os.Getpid(), "fsync:error=EIO", s.dir)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.appendEntry(&entryDraft{kind: KindWhole, body: parseEncodedBody([]byte(`"kind":"record","raw":[0,0],"type":"system"}`))})
	if stopped := i.Stop(); stopped != nil {
		t.Fatal(stopped)
	}
	if err == nil {
		t.Error("an entry was acknowledged before the directory of its segment was synced")
	}
}
