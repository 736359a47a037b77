package activity

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mcpproxy/internal/testutil/volume"
)

func newSpool(t *testing.T, dir string) *spool {
	t.Helper()
	return &spool{
		spoolDir: spoolDir{dir: dir, now: time.Now, openFile: openMappedFile, logger: slog.New(slog.DiscardHandler)},
		maxBytes: 1 << 30, maxSegment: 1 << 20, queue: entryQueue{max: 1 << 20}, projectorWake: newWakeSignal(),
	}
}

func openedSpool(t *testing.T, dir string) *spool {
	t.Helper()
	s := newSpool(t, dir)
	if _, err := s.openSpool(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close(true) })
	return s
}

func appendN(t *testing.T, s *spool, n int) {
	t.Helper()
	for i := range n {
		body := fmt.Sprintf(`"kind":"record","raw":[0,0],"type":"system","tool_name":"%d"}`, i)
		if _, err := s.appendEntry(&entryDraft{kind: KindWhole, body: parseEncodedBody([]byte(body))}); err != nil {
			t.Fatal(err)
		}
	}
}

// readAll reads the entries of a spool from its files.
func readAll(t *testing.T, s *spool, pos SpoolPosition) (entries []Entry, notes []string) {
	t.Helper()
	r := s.newSpoolReader(pos, 1<<62)
	defer r.close()
	for {
		e, err := r.readEntry()
		if err == io.EOF {
			return entries, r.notes
		}
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, e)
	}
}

func TestSpoolContinuesAtItsEnd(t *testing.T) {
	dir := t.TempDir()
	var last chainLink
	for round := range 4 {
		s := newSpool(t, dir)
		s.maxSegment = 3000
		notes, err := s.openSpool()
		if err != nil || len(notes) > 0 {
			t.Fatal(err, notes)
		}
		if s.durable != last || s.lastDurableSeq() != int64(20*round) {
			t.Fatalf("round %d opened at %d, want %d", round, s.durable.seq, last.seq)
		}
		appendN(t, s, 20)
		last = s.durable
		if v := readAndVerify(t, s); v.Break != "" || v.Entries != int64(20*(round+1)) {
			t.Fatalf("round %d: %+v", round, v)
		}
		if err := s.close(true); err != nil {
			t.Fatal(err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix)); len(files) < 4 {
		t.Fatalf("got only %d segments", len(files))
	}
}

func TestSpoolIsForOneProcess(t *testing.T) {
	dir := t.TempDir()
	openedSpool(t, dir)
	if _, err := newSpool(t, dir).openSpool(); err == nil {
		t.Fatal("a second spool opened the same directory")
	}
}

func TestSpoolFilesAreForTheirOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "spool")
	s := openedSpool(t, dir)
	appendN(t, s, 1)
	for path, want := range map[string]os.FileMode{dir: 0o700, s.lastSegment.path: 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

func TestConcurrentAppendsMakeOneChain(t *testing.T) {
	s := newSpool(t, t.TempDir())
	s.maxSegment = 64 << 10
	s.syncEachWrite = true
	if _, err := s.openSpool(); err != nil {
		t.Fatal(err)
	}
	defer s.close(true)
	const writers, each = 16, 50
	var wg sync.WaitGroup
	for range writers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			appendN(t, s, each)
		}()
	}
	wg.Wait()
	if v := readAndVerify(t, s); v.Break != "" || v.Entries != writers*each {
		t.Fatalf("%+v", v)
	}
	entries, notes := readAll(t, s, SpoolPosition{})
	if len(entries) != writers*each || len(notes) > 0 {
		t.Fatalf("read %d entries, %v", len(entries), notes)
	}
}

// TestTornTails damages the end of a spool in every way that a crash can, and in some other ways.
func TestTornTails(t *testing.T) {
	const entries = 10
	tests := []struct {
		name   string
		damage func(b []byte) []byte
		kept   int64 // number of entries that must still exist
		told   bool  // whether the damage is recorded, because an ordinary kill does not explain it
	}{
		{"nothing", func(b []byte) []byte { return b }, 10, false},
		{"without its newline", func(b []byte) []byte { return b[:len(b)-1] }, 9, false},
		{"half a line", func(b []byte) []byte { return b[:len(b)-40] }, 9, false},
		{"half a hash", func(b []byte) []byte { return append(b, "0123abc"...) }, 10, false},
		{"zeros behind", func(b []byte) []byte { return append(b, make([]byte, 5000)...) }, 10, false},
		{"many zeros behind", func(b []byte) []byte { return append(b, make([]byte, 300<<10)...) }, 10, false},
		{"garbage lines behind", func(b []byte) []byte { return append(b, "x\ny\n\n{}\n"...) }, 10, true},
		{"a line that does not fit", func(b []byte) []byte {
			return append(b, strings.Repeat("0", hexLen)+` {"id":"01JG2K4WZ3N8Q5R7T9V1X2Y3Z4","seq":11,"kind":"record","raw":[0,0]}`+"\n"...)
		}, 10, true},
		{"the last entry changed", func(b []byte) []byte { b[len(b)-5] ^= 1; return b }, 9, true},
		{"the last hash changed", func(b []byte) []byte { b[bytes.LastIndexByte(b[:len(b)-1], '\n')+3] ^= 1; return b }, 9, true},
		{"only the header", func(b []byte) []byte { return b[:bytes.IndexByte(b, '\n')+1] }, 0, false},
		{"half a header", func(b []byte) []byte { return b[:20] }, 0, false},
		{"nothing left", func([]byte) []byte { return nil }, 0, false},
		{"the header changed", func(b []byte) []byte { b[hexLen+3] ^= 1; return b }, 10, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			s := openedSpool(t, dir)
			appendN(t, s, entries)
			path := s.lastSegment.path
			if err := s.close(true); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			damaged := tt.damage(bytes.Clone(before))
			if err := os.WriteFile(path, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			s = newSpool(t, dir)
			notes, err := s.openSpool()
			if err != nil {
				t.Fatal(err)
			}
			defer s.close(true)
			if s.lastDurableSeq() != tt.kept {
				t.Fatalf("opened at entry %d, want %d", s.lastDurableSeq(), tt.kept)
			}
			wantDamagedBytesKept(t, dir, damaged)
			if (len(notes) > 0) != tt.told {
				t.Errorf("got the notes %q", notes)
			}
			appendN(t, s, 5)
			got, _ := readAll(t, s, SpoolPosition{})
			if int64(len(got)) != tt.kept+5 {
				t.Fatalf("read %d entries, want %d", len(got), tt.kept+5)
			}
		})
	}
}

// wantDamagedBytesKept checks that no byte of the damaged file is lost.
func wantDamagedBytesKept(t *testing.T, dir string, damaged []byte) {
	t.Helper()
	var all []byte
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, b...)
	}
	if used := bytes.TrimRight(damaged, "\x00"); len(all) < len(used) {
		t.Errorf("%d of %d bytes remain", len(all), len(used))
	}
}

// faultyDisk is a file system with configurable failures.
type faultyDisk struct {
	mu       sync.Mutex
	room     int   // free bytes; -1 means no limit
	sync     error // returned by Sync
	truncate error
}

func (d *faultyDisk) open(path string) (spoolFile, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	return &faultyFile{disk: d, File: f}, nil
}

func (d *faultyDisk) set(fn func(d *faultyDisk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fn(d)
}

type faultyFile struct {
	disk *faultyDisk
	*os.File
}

func (f *faultyFile) Write(p []byte) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if r := f.disk.room; r >= 0 && len(p) > r {
		n, err := f.File.Write(p[:r])
		f.disk.room = 0
		return n, errors.Join(syscall.ENOSPC, err)
	}
	if f.disk.room > 0 {
		f.disk.room -= len(p)
	}
	return f.File.Write(p)
}

// Reserve reserves nothing. It reports an unknown size.
func (f *faultyFile) Reserve(int64) (int64, error) { return math.MaxInt64, nil }

func (f *faultyFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	return f.disk.sync
}

func (f *faultyFile) Truncate(n int64) error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.truncate != nil {
		return f.disk.truncate
	}
	return f.File.Truncate(n)
}

// TestFailingDisk fills the disk at random times under load, in every mode. It checks that exactly the acknowledged
// entries exist.
func TestFailingDisk(t *testing.T) {
	for _, power := range []bool{false, true} {
		for _, truncate := range []error{nil, syscall.EIO} {
			for seed := range uint64(volume.FullOrQuick(6, 2)) {
				t.Run(fmt.Sprintf("power=%v truncate=%v seed=%d", power, truncate, seed), func(t *testing.T) {
					t.Parallel()
					failDisk(t, power, truncate, rand.New(rand.NewPCG(seed, 1)))
				})
			}
		}
	}
}

func failDisk(t *testing.T, power bool, truncate error, rnd *rand.Rand) {
	dir := t.TempDir()
	d := &faultyDisk{room: -1, truncate: truncate}
	s := newSpool(t, dir)
	s.openFile, s.syncEachWrite, s.maxSegment = d.open, power, 4000
	if _, err := s.openSpool(); err != nil {
		t.Fatal(err)
	}
	acknowledged := map[string]bool{}
	refused := 0
	for range 8 {
		d.set(func(d *faultyDisk) { d.room = rnd.IntN(3000) })
		ok, failed := appendConcurrently(s)
		for _, id := range ok {
			acknowledged[id] = true
		}
		refused += failed
		d.set(func(d *faultyDisk) { d.room = -1; d.sync = nil })
		if rnd.IntN(2) == 0 && power {
			d.set(func(d *faultyDisk) { d.sync = syscall.EIO })
		}
	}
	d.set(func(d *faultyDisk) { d.sync = nil })
	appendN(t, s, 1) // the spool recovers without help
	if s.writeError != nil {
		t.Errorf("the write error remains: %v", s.writeError)
	}
	if err := s.close(true); err != nil {
		t.Fatal(err)
	}
	s = openedSpool(t, dir)
	entries, _ := readAll(t, s, SpoolPosition{})
	if len(entries) != len(acknowledged)+1 || refused == 0 {
		t.Fatalf("%d entries exist, %d were acknowledged and %d refused", len(entries), len(acknowledged)+1, refused)
	}
	for i, e := range entries {
		if e.Seq != int64(i+1) || i < len(entries)-1 && !acknowledged[e.ID] {
			t.Fatalf("entry %d has the sequence number %d (%s)", i, e.Seq, e.ID)
		}
	}
}

func appendConcurrently(s *spool) (ok []string, failed int) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 4 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 10 {
				st, err := s.appendEntry(&entryDraft{kind: KindWhole, body: parseEncodedBody([]byte(`"kind":"record","raw":[0,0],"type":"system"}`))})
				mu.Lock()
				if err == nil {
					ok = append(ok, st.id)
				} else {
					failed++
				}
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	return ok, failed
}

// TestReadingWaitsForUnsyncedEntries removes unsynced entries from the files in several ways, as a failing disk could.
func TestReadingWaitsForUnsyncedEntries(t *testing.T) {
	for name, lose := range map[string]func(lines [][]byte){
		"the end":              func(lines [][]byte) { clearAll(lines[6:]) },
		"some in the middle":   func(lines [][]byte) { clearAll(lines[7:9]) },
		"one, with no trace":   func(lines [][]byte) { lines[8] = nil },
		"all after the header": func(lines [][]byte) { clearAll(lines[1:]) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openedSpool(t, dir)
			appendN(t, s, 10)
			b, err := os.ReadFile(s.lastSegment.path)
			if err != nil {
				t.Fatal(err)
			}
			lines := bytes.SplitAfter(b, []byte{'\n'})
			lose(lines)
			if err := os.WriteFile(s.lastSegment.path, bytes.Join(lines, nil), 0o600); err != nil {
				t.Fatal(err)
			}
			s.synced.seq = 5
			if name == "all after the header" {
				s.synced.seq = 0
			}
			r := s.newSpoolReader(SpoolPosition{}, math.MaxInt64)
			defer r.close()
			for err = error(nil); err == nil; {
				_, err = r.readEntry()
			}
			if !errors.Is(err, errNotOnDisk) || len(r.notes) > 0 {
				t.Errorf("error = %v, notes = %q", err, r.notes)
			}
			if kept, _ := filepath.Glob(filepath.Join(dir, "*.damaged-*")); len(kept) > 0 {
				t.Errorf("saved damaged bytes in %v, want none", kept)
			}
		})
	}
}

func clearAll(lines [][]byte) {
	for _, line := range lines {
		clear(line)
	}
}

// TestReadingSkipsDamagedEntries damages the middle of a spool.
func TestReadingSkipsDamagedEntries(t *testing.T) {
	dir := t.TempDir()
	s := openedSpool(t, dir)
	appendN(t, s, 10)
	b, err := os.ReadFile(s.lastSegment.path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(b, []byte{'\n'})
	clear(lines[4][10:30]) // the hash of entry 4; the header is line 0
	lines[7][hexLen+60] ^= 1
	if err := os.WriteFile(s.lastSegment.path, bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	s.synced = s.durable
	entries, notes := readAll(t, s, SpoolPosition{})
	if len(entries) != 9 {
		t.Errorf("read %d entries, want all but one", len(entries))
	}
	if text := strings.Join(notes, "\n"); !strings.Contains(text, "not an entry") || !strings.Contains(text, "broken before entry 7") {
		t.Errorf("got the notes %q", text)
	}
	if v := readAndVerify(t, s); v.Break == "" {
		t.Error("the verification found no break")
	}
	if kept, _ := filepath.Glob(filepath.Join(dir, "*.damaged-*")); len(kept) != 1 {
		t.Errorf("%d damaged parts were kept", len(kept))
	}
}

// TestVerifyFindsEveryChange checks that the verification finds every change of the chain.
func TestVerifyFindsEveryChange(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	dir := t.TempDir()
	s := newSpool(t, dir)
	s.maxSegment = 8000
	if _, err := s.openSpool(); err != nil {
		t.Fatal(err)
	}
	defer s.close(true)
	appendN(t, s, 200)
	if v := readAndVerify(t, s); v.Break != "" || v.Entries != 200 || v.First != 1 || v.Last != 200 {
		t.Fatalf("unchanged spool: %+v", v)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	segs := s.snapshot().segments
	for i := range 500 {
		seg := segs[rnd.IntN(len(segs))]
		good, err := os.ReadFile(seg.path)
		if err != nil {
			t.Fatal(err)
		}
		good = good[:seg.size] // only reserved bytes follow
		bad, what := mutateBytes(rnd, bytes.Clone(good))
		if bytes.HasPrefix(bad, good) { // no change, or only bytes after the end
			continue
		}
		if err := os.WriteFile(seg.path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if v := readAndVerify(t, s); v.Break == "" {
			t.Fatalf("%d: the verification missed %s in %s", i, what, filepath.Base(seg.path))
		}
		if err := os.WriteFile(seg.path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func mutateBytes(rnd *rand.Rand, b []byte) ([]byte, string) {
	lines := bytes.SplitAfter(b, []byte{'\n'})
	lines = lines[:len(lines)-1]
	i, j := 1+rnd.IntN(len(lines)-1), 1+rnd.IntN(len(lines)-1)
	switch rnd.IntN(5) {
	case 0:
		b[hexLen*2+rnd.IntN(len(b)-hexLen*2)] ^= 1 << rnd.IntN(8)
		return b, "a flipped bit"
	case 1:
		return bytes.Join(append(lines[:i:i], lines[i+1:]...), nil), "a removed entry"
	case 2:
		lines[i], lines[j] = lines[j], lines[i]
		return bytes.Join(lines, nil), "two exchanged entries"
	case 3:
		return bytes.Join(append(lines[:i:i], append([][]byte{lines[j]}, lines[i:]...)...), nil), "an inserted entry"
	}
	return b[:hexLen*2+rnd.IntN(len(b)-hexLen*2)], "a cut"
}

func TestMemoryOfTheSpoolIsBounded(t *testing.T) {
	s := newSpool(t, t.TempDir())
	s.queue.max = 3 * blockSize
	if _, err := s.openSpool(); err != nil {
		t.Fatal(err)
	}
	defer s.close(true)
	appendN(t, s, 5000) // none of them is projected
	if s.queue.bytes > 4*blockSize {
		t.Errorf("the queue has %d bytes", s.queue.bytes)
	}
	if _, ok := s.takeBatch(nil, 0); ok {
		t.Error("takeBatch found the first entry in memory")
	}
	first := s.queue.blocks[0].entries[0].Seq
	entries, ok := s.takeBatch(nil, first+10)
	if !ok || len(entries) == 0 || entries[0].Seq != first+11 {
		t.Errorf("takeBatch did not return entry %d", first+11)
	}
	s.releaseProjected(s.lastDurableSeq())
	if len(s.queue.blocks) != 1 {
		t.Errorf("%d blocks remain", len(s.queue.blocks))
	}
}

// syncedFile is a file of the spool that tracks whether all its bytes were synced.
type syncedFile struct {
	spoolFile
	path     string
	unsynced *sync.Map // paths
}

func (f *syncedFile) Write(p []byte) (int, error) {
	f.unsynced.Store(f.path, true)
	return f.spoolFile.Write(p)
}

func (f *syncedFile) Sync() error {
	f.unsynced.Delete(f.path)
	return f.spoolFile.Sync()
}

// TestFullSegmentsAreSynced checks that a sync includes the segments that became full since the last sync.
func TestFullSegmentsAreSynced(t *testing.T) {
	var unsynced sync.Map
	s := newSpool(t, t.TempDir())
	s.maxSegment = 4000
	s.openFile = func(path string) (spoolFile, error) {
		f, err := openPlainFile(path)
		return &syncedFile{f, path, &unsynced}, err
	}
	if _, err := s.openSpool(); err != nil {
		t.Fatal(err)
	}
	defer s.close(true)
	appendN(t, s, 100)
	if len(s.segments) < 3 || len(s.fullSegments) == 0 {
		t.Fatalf("got %d segments, %d of them full and not synced", len(s.segments), len(s.fullSegments))
	}
	if last, err := s.syncFiles(); err != nil || last != s.durable {
		t.Errorf("syncFiles gave %v, %v", last, err)
	}
	for path := range unsynced.Range {
		t.Errorf("%s was not synced", path)
	}
}
