//go:build unix

package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/semaphore"

	"mcpproxy/internal/mcp/wirejson"
)

// left returns the number of available bytes, or 0 while another caller waits.
func left(r *MemoryBudget) int {
	return sort.Search(r.max+roomOverhead+1, func(n int) bool {
		there := r.sem.TryAcquire(int64(n))
		if there {
			r.releaseBytes(n)
		}
		return !there
	}) - 1
}

// TestSlotsOfABudget checks that the budget is given in the order of the requests, and that a caller that stops waiting
// delays no other.
func TestSlotsOfABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewMemoryBudget(100, &LargeBufferPool{})
		r.sem = semaphore.NewWeighted(100)
		if !r.acquireBytes(60, nil) {
			t.Fatal("an unused budget has no room")
		}
		var mu sync.Mutex
		var order []string
		var waiting sync.WaitGroup
		wait := func(name string, n int, done <-chan struct{}) {
			waiting.Go(func() {
				got := fmt.Sprint(name, " ", r.acquireBytes(n, done))
				mu.Lock()
				defer mu.Unlock()
				order = append(order, got)
			})
			synctest.Wait()
		}
		gone, cancel := context.WithCancel(t.Context())
		wait("large", 70, gone.Done())
		wait("small", 30, nil) // there would be room for it
		wait("last", 100, nil)
		if len(order) != 0 {
			t.Errorf("%q did not wait", order)
		}
		cancel()
		waiting.Wait() // the last one waits for budgetWait
		slices.Sort(order)
		if got := fmt.Sprint(order); got != "[large false last false small true]" || left(r) != 10 {
			t.Errorf("order %s, %d bytes left", got, left(r))
		}
		wait("next", 20, nil)
		r.releaseBytes(60)
		waiting.Wait()
		if len(order) != 4 || order[3] != "next true" || left(r) != 50 {
			t.Errorf("order %s, %d bytes left", order, left(r))
		}
	})
}

// TestBodiesAreReadWithinTheBudget checks that a body that is read within the budget is unchanged, whatever its
// announced length, and that the budget is completely available afterwards.
func TestBodiesAreReadWithinTheBudget(t *testing.T) {
	t.Parallel()
	const limit = 4 << 20
	r := NewMemoryBudget(limit, &LargeBufferPool{})
	broken := errors.New("broken")
	for _, n := range []int{0, 10, trustedLength - 1, trustedLength, trustedLength + 1, 3 << 20, limit, limit + 1, limit + roomOverhead + 1} {
		sent := bytes.Repeat([]byte("0123456789abcdef"), n/16+1)[:n]
		for name, a := range map[string]*HTTPResponse{
			"known":   {length: int64(n), Body: io.NopCloser(bytes.NewReader(sent))},
			"unknown": {length: -1, Body: io.NopCloser(bytes.NewReader(sent))},
			"broken":  {length: -1, Body: io.NopCloser(io.MultiReader(bytes.NewReader(sent), errReader{broken}))},
		} {
			var want error
			switch {
			case n > limit:
				want = ErrTooLarge
			case name == "broken":
				want = broken
			}
			body, err := r.ForReader(nil).readBody(a)
			if !errors.Is(err, want) || err == nil && !bytes.Equal(body, sent) {
				t.Errorf("%s length, %d bytes: %d bytes, %v, want %v", name, n, len(body), err, want)
			}
			if left(r) != limit+roomOverhead {
				t.Fatalf("%s length, %d bytes: %d bytes of the budget are left", name, n, left(r))
			}
		}
	}
	full := make(chan struct{})
	close(full)
	r.acquireBytes(left(r), nil)
	for _, length := range []int64{2 << 20, -1} {
		a := &HTTPResponse{length: length, Body: io.NopCloser(bytes.NewReader(make([]byte, 2<<20)))}
		if _, err := r.ForReader(full).readBody(a); !errors.Is(err, errOverBudget) {
			t.Errorf("length %d, no budget: %v", length, err)
		}
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

// portions is a reader that returns small portions, as a pipe does.
type portions struct{ r io.Reader }

func (p portions) Read(b []byte) (int, error) { return p.r.Read(b[:min(len(b), 64<<10)]) }

// TestPaceAfterTooLongMessage checks that the output of a server is read at a limited rate after it has sent a message
// that was too long, including skipped bytes.
func TestPaceAfterTooLongMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 4 << 20
		r := NewMemoryBudget(limit, &LargeBufferPool{})
		defer r.buffers.Close()
		endless := func(v *ReaderBudget) *wirejson.LineReader {
			return wirejson.NewLineReaderWithPool(strings.NewReader(strings.Repeat("x", 4*limit)+"\n"), limit, v)
		}
		for _, again := range []bool{false, true} {
			start := time.Now()
			a := &HTTPResponse{length: -1, Body: io.NopCloser(portions{strings.NewReader(strings.Repeat("x", limit+1))})}
			if _, err := r.ForReader(nil).readBody(a); !errors.Is(err, ErrTooLarge) {
				t.Fatal(err)
			}
			whole := time.Since(start)
			lines := endless(r.ForReader(nil))
			if _, err := lines.Next(); err != wirejson.ErrTooLong {
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
