package activity

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"mcpproxy/internal/testutil/volume"
)

// readEventsFrom reads all events after a position.
func readEventsFrom(t *testing.T, l *Log, from ChainPosition) ([]EntryEvent, error) {
	t.Helper()
	r := l.NewEventReader(from)
	defer r.Close()
	var all []EntryEvent
	for {
		n := len(all)
		var err error
		if all, err = r.ReadEvents(t.Context(), all); err != nil || len(all) == n {
			return all, err
		}
	}
}

// named returns a position after conversion to text and back, which shortens the hash.
func (p ChainPosition) named(t *testing.T) ChainPosition {
	t.Helper()
	short, ok := ParseChainPosition(string(p.AppendText(nil)))
	if !ok {
		t.Fatalf("ParseChainPosition rejected %s", p.AppendText(nil))
	}
	return short
}

func wantEvents(t *testing.T, what string, got, want []EntryEvent) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: got %d events, want %d", what, len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: event %d = %+v, want %+v", what, i, got[i], want[i])
		}
	}
}

// TestReadFromAnyPosition checks that a reader from any position returns exactly the entries after it, like a reader
// from the start. It uses random sequences of events: full segments, a store that fails, restarts.
func TestReadFromAnyPosition(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	for seed := range uint64(volume.FullOrQuick(8, 3)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			dir, st := t.TempDir(), &memoryStore{}
			opt := Options{Dir: dir, maxSegment: 24 << (10 + seed%3), maxQueue: 1 << 17}
			l, err := Open(opt, st)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { closeLog(t, l) }()
			var all []EntryEvent // all events, as a permanent follower receives them
			always, _ := l.Follow()
			read := func() {
				for n := -1; n < len(all); {
					n = len(all)
					if all, err = always.ReadEvents(t.Context(), all); err != nil {
						t.Fatal(err)
					}
				}
			}
			var open []string
			for step := range 400 {
				switch n := random.IntN(100); {
				case n < 45:
					r := Record{Type: ToolCall, ServerName: "s", ToolName: fmt.Sprint("t", step), Actor: "agent",
						Arguments: slices.Repeat([]byte("7"), random.IntN(300)+1), Metadata: Metadata{Intent: &Intent{OperationType: "write", Reason: "because"}}}
					if err := l.Begin(&r); err != nil {
						t.Fatal(err)
					}
					open = append(open, r.ID)
				case n < 85 && len(open) > 0:
					i := random.IntN(len(open))
					if err := l.End(open[i], Outcome{Status: Failed, ErrorCode: "TIMEOUT", Duration: time.Duration(step) * time.Millisecond}); err != nil {
						t.Fatal(err)
					}
					open = slices.Delete(open, i, i+1)
				case n < 93:
					if err := l.AppendRefusal(&Record{ServerName: "s", ToolName: fmt.Sprint("t", step%3), Actor: "agent"}); err != nil {
						t.Fatal(err)
					}
				case n < 96:
					read()
				case n < 98:
					_ = l.progress.waitProjected(t.Context())
				case n < 99 && step > 0:
					read()
					at := all[len(all)-1].ChainPosition
					always.Close()
					closeLog(t, l)
					if l, err = Open(opt, st); err != nil {
						t.Fatal(err)
					}
					always, open = l.NewEventReader(at), nil
					read()
					_ = l.progress.waitProjected(t.Context()) // open records become interrupted
				}
			}
			read()
			always.Close()
			for i, s := range all {
				if s.Seq != int64(i+1) {
					t.Fatalf("event %d has the sequence number %d", i, s.Seq)
				}
			}
			segments, _ := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
			if len(segments) < 2 {
				t.Fatalf("got only %d segments, too few for this test", len(segments))
			}
			readable := slices.IndexFunc(all, func(e EntryEvent) bool { return e.Seq+1 >= l.spool.snapshot().segments[0].first })
			for n := range 40 {
				i := random.IntN(len(all))
				if n%2 == 0 { // the number of removed segments depends on the machine
					i = readable + random.IntN(len(all)-readable)
				}
				got, err := readEventsFrom(t, l, all[i].named(t))
				if oldest := l.spool.snapshot().segments[0].first; errors.Is(err, errGap) && all[i].Seq+1 < oldest {
					continue
				}
				if err != nil {
					t.Fatalf("reading from event %d: %v", i, err)
				}
				wantEvents(t, fmt.Sprint("from ", i), got[:min(len(got), len(all)-i-1)], all[i+1:]) // a count may have been added
			}
		})
	}
}

// TestUnreadablePositions checks that reading returns errGap if the position is not in the chain or its next entry was
// removed.
func TestUnreadablePositions(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, Options{Dir: dir, maxSegment: 4 << 10}, &memoryStore{})
	recordCall(t, l, "a")
	first := l.LastPosition()
	other := first
	other.Hash[0]++
	later := first
	later.Seq += 1000
	for what, p := range map[string]ChainPosition{"another chain": other, "what is to come": later, "another beginning": {Hash: Hash{1}}} {
		if got, err := readEventsFrom(t, l, p); !errors.Is(err, errGap) {
			t.Errorf("%s: got %d events, %v", what, len(got), err)
		}
	}
	for range 200 {
		recordCall(t, l, "b")
	}
	for range 2 { // the first round creates entries that the projector can remove in the second
		recordCall(t, l, "c")
		if err := l.progress.waitProjected(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := readEventsFrom(t, l, first); !errors.Is(err, errGap) {
		t.Errorf("before the pruned entries: got %d events, %v", len(got), err)
	}
	if got, err := readEventsFrom(t, l, l.LastPosition().named(t)); len(got) > 0 || err != nil {
		t.Errorf("at the end: got %d events, %v", len(got), err)
	}
	for _, text := range []string{"", "1", "1-", "-1-0011223344556677", "1-zz11223344556677", "1-00112233445566770", "01x-0011223344556677"} {
		if p, ok := ParseChainPosition(text); ok {
			t.Errorf("ParseChainPosition accepted %q: %v", text, p)
		}
	}
}

// TestFollowing checks that the follower is notified of appended entries, and that unread entries stay in memory.
func TestFollowing(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir()}, &memoryStore{})
	r, appended := l.Follow()
	defer r.Close()
	for range 500 {
		recordCall(t, l, "a")
	}
	<-appended
	if err := l.progress.waitProjected(t.Context()); err != nil {
		t.Fatal(err)
	}
	if steps, err := r.ReadEvents(t.Context(), nil); err != nil || len(steps) == 0 {
		t.Fatal(len(steps), err)
	} else if steps, err = r.ReadEvents(t.Context(), steps); err != nil || r.file != nil || steps[0].Seq != 1 || len(steps) != 2*maxEventsPerRead {
		t.Fatalf("got %d events, %v; read from the files: %v", len(steps), err, r.file != nil)
	}
	r.Close()
	recordCall(t, l, "b")
	select {
	case <-appended: // the value for an earlier entry
	default:
	}
	recordCall(t, l, "c")
	select {
	case <-appended:
		t.Error("the closed follower was notified")
	default:
	}
}
