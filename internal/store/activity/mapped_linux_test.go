package activity

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestAKilledProcessLeavesNoDamage checks that reserved but unused bytes are not mistaken for a torn entry.
func TestAKilledProcessLeavesNoDamage(t *testing.T) {
	dir, left := t.TempDir(), t.TempDir()
	s := openedSpool(t, dir)
	defer s.close(true)
	appendN(t, s, 10)
	// Another process sees the file in the state after a kill.
	asLeft, err := os.ReadFile(s.lastSegment.path)
	if err != nil {
		t.Fatal(err)
	}
	if len(asLeft) < windowSize {
		t.Fatalf("the segment has %d bytes, so nothing is reserved", len(asLeft))
	}
	if err := os.WriteFile(filepath.Join(left, filepath.Base(s.lastSegment.path)), asLeft, 0o600); err != nil {
		t.Fatal(err)
	}
	again := newSpool(t, left)
	notes, err := again.openSpool()
	if err != nil {
		t.Fatal(err)
	}
	defer again.close(true)
	if len(notes) > 0 || again.lastDurableSeq() != 10 {
		t.Fatalf("opened at entry %d with %q, want 10 and no notes", again.lastDurableSeq(), notes)
	}
	appendN(t, again, 5)
	if v := readAndVerify(t, again); v.Break != "" || v.Entries != 15 {
		t.Fatalf("%+v", v)
	}
}

// TestAKillInTheMiddleOfACopy simulates a kill during a copy: everything before the current piece exists, a part of the
// piece exists, and nothing after it.
func TestAKillInTheMiddleOfACopy(t *testing.T) {
	t.Parallel()
	s := openedSpool(t, t.TempDir())
	defer s.close(true)
	appendN(t, s, 20)
	name, size := filepath.Base(s.lastSegment.path), s.lastSegment.size
	whole, err := os.ReadFile(s.lastSegment.path)
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		left := make([]byte, windowSize)
		from := rnd.Int64N(size)
		copy(left, whole[:from])
		piece := min(pieceSize, size-from)
		copy(left[from:], whole[from:from+piece])
		hole := rnd.Int64N(piece)
		clear(left[from+hole : from+hole+rnd.Int64N(piece-hole)+1])
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), left, 0o600); err != nil {
			t.Fatal(err)
		}
		again := newSpool(t, dir)
		if _, err := again.openSpool(); err != nil {
			t.Fatal(err)
		}
		before := int64(max(0, bytes.Count(whole[:from], []byte{'\n'})-1)) // the header is not counted
		if again.lastDurableSeq() < before {
			t.Errorf("killed at byte %d: opened at entry %d, want at least %d", from, again.lastDurableSeq(), before)
		}
		appendN(t, again, 2)
		if v := readAndVerify(t, again); v.Break != "" || v.Entries != again.lastDurableSeq() {
			t.Errorf("killed at byte %d: %+v, want %d entries", from, v, again.lastDurableSeq())
		}
		if err := again.close(true); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMappedFileHasTheWrittenBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, err := openMappedFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	for i, n := range []int{1, 600, windowSize - 700, 2*windowSize + 5, windowSize, 3, 4096} {
		part := bytes.Repeat([]byte{byte('a' + i)}, n)
		if k, err := f.Write(part); err != nil || k != n {
			t.Fatalf("wrote %d of %d: %v", k, n, err)
		}
		want = append(want, part...)
		if i == 3 { // remove the last entry
			want = want[:len(want)-n]
			if err := f.Truncate(int64(len(want))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("the file has %d bytes, want %d", len(got), len(want))
	}
}

// TestAFileThatIsCutShortIsAnError checks that a fault in the mapping makes the log refuse the entry, and that the log
// continues in a new segment.
func TestAFileThatIsCutShortIsAnError(t *testing.T) {
	s := openedSpool(t, t.TempDir())
	defer s.close(true)
	appendN(t, s, 3)
	if err := os.Truncate(s.lastSegment.path, 0); err != nil {
		t.Fatal(err)
	}
	d := entryDraft{kind: KindWhole, body: parseEncodedBody([]byte(`"kind":"record","raw":[0,0]}`))}
	if _, err := s.appendEntry(&d); err == nil {
		t.Fatal("an entry was accepted although its file was truncated")
	}
	if _, err := s.appendEntry(&d); err != nil {
		t.Fatalf("the log does not continue: %v", err)
	}
	if len(s.segments) != 2 {
		t.Errorf("got %d segments, want a new one", len(s.segments))
	}
}
