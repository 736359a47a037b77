//go:build unix

package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/mcptest"
)

var tenX = []byte("xxxxxxxxxx")

// whole reports whether no part of a budget is in use.
func whole(b *transport.MemoryBudget) bool {
	over := make(chan struct{})
	close(over)
	v := b.ForReader(over)
	buf := v.Take(0)
	if buf == nil {
		return false
	}
	v.Give(buf)
	return true
}

// TestConcurrentLargeAnswers: large responses of one server that arrive at the same time are read one after the other,
// and all of them arrive.
func TestConcurrentLargeAnswers(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"stdio", "json", "events"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := stdioSpec(t, "s", "zoo")
			if name != "stdio" {
				spec = httpSpec(t, "s", mcptest.New(mcptest.Options{Events: name == "events"}, mcptest.SampleTools()...))
			}
			f := newFixture(t, func(o *Options) { o.MaxMessage = 4 << 20 })
			f.ApplySpecs([]Spec{spec})
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
			if !whole(f.find("s").dialer.budget) {
				t.Error("a part of the budget was not released")
			}
		})
	}
}

// TestUnfinishedMessageUsesNoOtherBudget: an incomplete large message of one server does not use the budget of another
// server.
func TestUnfinishedMessageUsesNoOtherBudget(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(o *Options) { o.MaxMessage = 4 << 20 })
	f.ApplySpecs([]Spec{stdioSpec(t, "bad", "zoo"), stdioSpec(t, "good", "zoo")})
	f.untilReady(t, "bad", 0)
	f.untilReady(t, "good", 0)
	ctx, cancel := context.WithCancel(t.Context())
	var hanging sync.WaitGroup
	hanging.Go(func() {
		_, err := f.Call(ctx, "bad", Call{Tool: "half", Arguments: json.RawMessage(`{"bytes":2000000}`)})
		if err == nil {
			t.Error("an incomplete response counts as a response")
		}
	})
	defer hanging.Wait()
	defer cancel()
	for r, limit := f.find("bad").dialer.budget, time.Now().Add(patience); ; runtime.Gosched() {
		if !whole(r) {
			break
		}
		if time.Now().After(limit) {
			t.Fatal("the first half of the message does not arrive")
		}
	}
	if got := f.must("good", "huge", `{"bytes":2000000}`); strings.Count(got, string(tenX)) != 200_000 {
		t.Errorf("%d bytes", len(got))
	}
}

// TestEndlessListIsBounded: the size limit of a message applies to all pages of a list together.
func TestEndlessListIsBounded(t *testing.T) {
	t.Parallel()
	s := mcptest.New(mcptest.Options{EndlessPages: true, PageText: 100_000})
	f := newFixture(t, func(o *Options) { o.MaxMessage = 1 << 20 })
	f.ApplySpecs([]Spec{httpSpec(t, "s", s)})
	f.until(t, "the failure", func() bool { return f.last("s").Phase == Failed })
	if n := len(s.Received("tools/list")); n != 11 {
		t.Errorf("%d pages were read", n)
	}
	if st, _ := f.State("s"); !strings.Contains(st.LastError, "longer than 1048576 bytes") {
		t.Errorf("%q", st.LastError)
	}
	_, err := f.call("s", "x", "{}")
	wantCode(t, err, problem.ServerUnavailable)
}
