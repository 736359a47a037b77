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

// readOn reads from a place to the end.
func readOn(t *testing.T, l *Log, from Place) ([]Step, error) {
	t.Helper()
	r := l.ReadFrom(from)
	defer r.Close()
	var all []Step
	for {
		n := len(all)
		var err error
		if all, err = r.Next(t.Context(), all); err != nil || len(all) == n {
			return all, err
		}
	}
}

// named is a place as an id names it.
func (p Place) named(t *testing.T) Place {
	t.Helper()
	short, ok := ParsePlace(string(p.Append(nil)))
	if !ok {
		t.Fatalf("%s is no place", p.Append(nil))
	}
	return short
}

func wantSteps(t *testing.T, what string, got, want []Step) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d steps, want %d", what, len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: step %d is %+v, want %+v", what, i, got[i], want[i])
		}
	}
}

// Whatever happens meanwhile (segments that fill up, a store that takes entries or
// does not, restarts), who reads on from any place of the log reads exactly what
// follows it, as who was there all the time.
func TestReadingOnFromAnyPlace(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	for seed := range uint64(volume.FullOrQuick(8, 3)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			dir, st := t.TempDir(), &memory{}
			opt := Options{Dir: dir, maxSegment: 24 << (10 + seed%3), maxQueue: 1 << 17}
			l, err := Open(opt, st)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { closeLog(t, l) }()
			var all []Step // what one who never left was told
			always, _ := l.Follow()
			read := func() {
				for n := -1; n < len(all); {
					n = len(all)
					if all, err = always.Next(t.Context(), all); err != nil {
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
					if err := l.Refuse(&Record{ServerName: "s", ToolName: fmt.Sprint("t", step%3), Actor: "agent"}); err != nil {
						t.Fatal(err)
					}
				case n < 96:
					read()
				case n < 98:
					_ = l.progress.flush(t.Context())
				case n < 99 && step > 0:
					read()
					at := all[len(all)-1].Place
					always.Close()
					closeLog(t, l)
					if l, err = Open(opt, st); err != nil {
						t.Fatal(err)
					}
					always, open = l.ReadFrom(at), nil
					read()
					_ = l.progress.flush(t.Context()) // what was open is interrupted
				}
			}
			read()
			always.Close()
			for i, s := range all {
				if s.Seq != int64(i+1) {
					t.Fatalf("step %d has number %d", i, s.Seq)
				}
			}
			segments, _ := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix))
			if len(segments) < 2 {
				t.Fatalf("%d segments: the test tests little", len(segments))
			}
			gaps := 0
			for range 40 {
				i := random.IntN(len(all))
				got, err := readOn(t, l, all[i].named(t))
				if oldest := l.spool.mark().segments[0].first; errors.Is(err, errGap) && all[i].Seq+1 < oldest {
					gaps++
					continue
				}
				if err != nil {
					t.Fatalf("from %d: %v", i, err)
				}
				wantSteps(t, fmt.Sprint("from ", i), got[:min(len(got), len(all)-i-1)], all[i+1:]) // a count of refusals may have come since
			}
			if gaps > 30 {
				t.Errorf("%d of 40 places were gone: the test tests little", gaps)
			}
		})
	}
}

// A place that is not one of the chain, or whose successor is gone, is a gap.
func TestPlacesThatCannotBeReadOnFrom(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, Options{Dir: dir, maxSegment: 4 << 10}, &memory{})
	call(t, l, "a")
	first := l.Place()
	other := first
	other.Hash[0]++
	later := first
	later.Seq += 1000
	for what, p := range map[string]Place{"another chain": other, "what is to come": later, "another beginning": {Hash: Hash{1}}} {
		if got, err := readOn(t, l, p); !errors.Is(err, errGap) {
			t.Errorf("%s: %d steps, %v", what, len(got), err)
		}
	}
	for range 200 {
		call(t, l, "b")
	}
	for range 2 { // by the second one the projector has removed what the first one made room for
		call(t, l, "c")
		if err := l.progress.flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := readOn(t, l, first); !errors.Is(err, errGap) {
		t.Errorf("pruned: %d steps, %v", len(got), err)
	}
	if got, err := readOn(t, l, l.Place().named(t)); len(got) > 0 || err != nil {
		t.Errorf("at the end: %d steps, %v", len(got), err)
	}
	for _, text := range []string{"", "1", "1-", "-1-0011223344556677", "1-zz11223344556677", "1-00112233445566770", "01x-0011223344556677"} {
		if p, ok := ParsePlace(text); ok {
			t.Errorf("%q is a place: %v", text, p)
		}
	}
}

// What is appended is told, and what the follower has not read stays in memory.
func TestFollowing(t *testing.T) {
	l := openLog(t, Options{Dir: t.TempDir()}, &memory{})
	r, appended := l.Follow()
	defer r.Close()
	for range 500 {
		call(t, l, "a")
	}
	<-appended
	if err := l.progress.flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if steps, err := r.Next(t.Context(), nil); err != nil || len(steps) == 0 {
		t.Fatal(len(steps), err)
	} else if steps, err = r.Next(t.Context(), steps); err != nil || r.file != nil || steps[0].Seq != 1 || len(steps) != 2*stepsMax {
		t.Fatalf("%d steps, %v; from the files: %v", len(steps), err, r.file != nil)
	}
	r.Close()
	call(t, l, "b")
	select {
	case <-appended: // a value from before
	default:
	}
	call(t, l, "c")
	select {
	case <-appended:
		t.Error("told after the end")
	default:
	}
}
