//go:build unix

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/jsonrpc"
	"mcpproxy/internal/mcptest"
	"mcpproxy/internal/problem"
)

// Places are given in the order in which they are asked for; who stops waiting
// is in nobody's way.
func TestPlacesInARoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom(100, &buffers{})
		r.left = 100
		if !r.enter(60, nil) {
			t.Fatal("an empty room has no place")
		}
		var mu sync.Mutex
		var order []string
		var waiting sync.WaitGroup
		wait := func(name string, n int, done <-chan struct{}) {
			waiting.Go(func() {
				got := fmt.Sprint(name, " ", r.enter(n, done))
				mu.Lock()
				defer mu.Unlock()
				order = append(order, got)
			})
			synctest.Wait()
		}
		gone, cancel := context.WithCancel(t.Context())
		wait("large", 70, gone.Done())
		wait("small", 30, nil) // there would be place for it
		wait("last", 100, nil)
		if len(order) != 0 {
			t.Errorf("%q have not waited", order)
		}
		cancel()
		waiting.Wait() // the last one for crowdedTime
		slices.Sort(order)
		if got := fmt.Sprint(order); got != "[large false last false small true]" || r.left != 10 || len(r.queue) != 0 {
			t.Errorf("%s, %d are left", got, r.left)
		}
		wait("next", 20, nil)
		r.leave(60)
		waiting.Wait()
		if len(order) != 4 || order[3] != "next true" || r.left != 50 {
			t.Errorf("%s, %d are left", order, r.left)
		}
	})
}

// What is read in the room comes out as it was sent, whatever is said of its
// length, and the room is as large afterwards.
func TestBodiesAreReadInTheRoom(t *testing.T) {
	t.Parallel()
	const limit = 4 << 20
	r := newRoom(limit, &buffers{})
	broken := errors.New("broken")
	for _, n := range []int{0, 10, trustedLength - 1, trustedLength, trustedLength + 1, 3 << 20, limit, limit + 1, limit + roomOverhead + 1} {
		sent := bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n]
		for name, a := range map[string]*answer{
			"known":   {length: int64(n), body: io.NopCloser(bytes.NewReader(sent))},
			"unknown": {length: -1, body: io.NopCloser(bytes.NewReader(sent))},
			"broken":  {length: -1, body: io.NopCloser(io.MultiReader(bytes.NewReader(sent), errReader{broken}))},
		} {
			var want error
			switch {
			case n > limit:
				want = errTooLarge
			case name == "broken":
				want = broken
			}
			body, err := r.until(nil).readBody(a)
			if !errors.Is(err, want) || err == nil && !bytes.Equal(body, sent) {
				t.Errorf("%s length, %d bytes: %d bytes, %v, want %v", name, n, len(body), err, want)
			}
			if r.left != limit+roomOverhead {
				t.Fatalf("%s length, %d bytes: %d are left", name, n, r.left)
			}
		}
	}
	full := make(chan struct{})
	close(full)
	r.enter(r.left, nil)
	for _, length := range []int64{2 << 20, -1} {
		a := &answer{length: length, body: io.NopCloser(bytes.NewReader(make([]byte, 2<<20)))}
		if _, err := r.until(full).readBody(a); !errors.Is(err, errCrowded) {
			t.Errorf("length %d, no room: %v", length, err)
		}
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

var tenX = []byte("xxxxxxxxxx")

// TestLargeAnswersTogether: large answers of one server that come at the same
// time are read one after the other, and all come.
func TestLargeAnswersTogether(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"stdio", "json", "events"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := stdioSpec(t, "s", "zoo")
			if name != "stdio" {
				spec = httpSpec(t, "s", mcptest.New(mcptest.Options{Events: name == "events"}, mcptest.Zoo()...))
			}
			f := newFixture(t, func(o *Options) { o.MaxMessage = 4 << 20 })
			f.Apply([]Spec{spec})
			f.untilReady(t, "s", 0)
			var calls sync.WaitGroup
			for range 4 {
				calls.Go(func() {
					got, err := f.call("s", "huge", `{"bytes":2000000}`)
					if err != nil || bytes.Count(got.Result, tenX) != 200_000 {
						t.Errorf("%d bytes, %v", len(got.Result), err)
					}
				})
			}
			calls.Wait()
			if r := f.find("s").room; r.left != r.max+roomOverhead {
				t.Errorf("%d of %d are left", r.left, r.max)
			}
		})
	}
}

// TestTheRoomOfAnother: a server that begins a large message and does not end
// it takes the room of nobody else.
func TestTheRoomOfAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *Options) { o.MaxMessage = 4 << 20 })
	f.Apply([]Spec{stdioSpec(t, "bad", "zoo"), stdioSpec(t, "good", "zoo")})
	f.untilReady(t, "bad", 0)
	f.untilReady(t, "good", 0)
	ctx, cancel := context.WithCancel(t.Context())
	var hanging sync.WaitGroup
	hanging.Go(func() {
		_, err := f.Call(ctx, "bad", Call{Tool: "half", Arguments: json.RawMessage(`{"bytes":2000000}`)})
		if err == nil {
			t.Error("half an answer is one")
		}
	})
	defer hanging.Wait()
	defer cancel()
	for r, limit := f.find("bad").room, time.Now().Add(20*time.Second); ; runtime.Gosched() {
		r.mu.Lock()
		full := r.left == 0
		r.mu.Unlock()
		if full {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("half of a message does not come")
		}
	}
	if got := f.must("good", "huge", `{"bytes":2000000}`); strings.Count(got, string(tenX)) != 200_000 {
		t.Errorf("%d bytes", len(got))
	}
}

// TestEndlessListIsBounded: all pages of a list together are as long as a
// message may be.
func TestEndlessListIsBounded(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{EndlessPages: true, PageText: 100_000})
	f := newFixture(t, func(o *Options) { o.MaxMessage = 1 << 20 })
	f.Apply([]Spec{httpSpec(t, "s", s)})
	f.until(t, "the failure", func() bool { return f.last("s").Phase == Waiting })
	if n := len(s.Seen("tools/list")); n != 11 {
		t.Errorf("%d pages were read", n)
	}
	if st, _ := f.State("s"); !strings.Contains(st.LastError, "longer than 1048576 bytes") {
		t.Errorf("%q", st.LastError)
	}
	_, err := f.call("s", "x", "{}")
	wantCode(t, err, problem.ServerUnavailable)
}

// portions reads as from a pipe.
type portions struct{ r io.Reader }

func (p portions) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), 64<<10)]) }

// TestPaceOfTheSuspect: a server that has sent a message that was too long is
// read at a pace from then on, also what is skipped; before it is not.
func TestPaceOfTheSuspect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 4 << 20
		r := newRoom(limit, &buffers{})
		defer r.buffers.close()
		r.left = limit + roomOverhead
		endless := func(v *visit) *jsonrpc.LineReader {
			return jsonrpc.NewLineReaderIn(strings.NewReader(strings.Repeat("x", 4*limit)+"\n"), limit, v)
		}
		for _, again := range []bool{false, true} {
			start := time.Now()
			a := &answer{length: -1, body: io.NopCloser(portions{strings.NewReader(strings.Repeat("x", limit+1))})}
			if _, err := r.until(nil).readBody(a); !errors.Is(err, errTooLarge) {
				t.Fatal(err)
			}
			whole := time.Since(start)
			lines := endless(r.until(nil))
			if _, err := lines.Next(); err != jsonrpc.ErrTooLong {
				t.Fatal(err)
			}
			part := time.Since(start) - whole
			if _, err := lines.Next(); err != io.EOF {
				t.Fatal(err)
			}
			rest := time.Since(start) - whole - part
			lines.Release()
			least := time.Second * (limit - 2*trustedLength) / paceRate
			if again && (whole < least || part < least || rest < 2*least) || !again && whole > 0 {
				t.Errorf("again %v: %v, %v and %v", again, whole, part, rest)
			}
		}
	})
}
