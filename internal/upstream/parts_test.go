//go:build unix

package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestStartsAfterACrash: the first client that begins anew does not wait, the
// others come one after the other, and a while later nobody waits.
func TestStartsAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var talks talks
		starts := func(n int) (after []time.Duration) {
			began := time.Now()
			for range n {
				go func() {
					if err := talks.turn(t.Context()); err != nil {
						t.Error(err)
					}
					talks.mu.Lock()
					defer talks.mu.Unlock()
					after = append(after, time.Since(began))
				}()
			}
			time.Sleep(time.Second)
			synctest.Wait()
			return after
		}
		if got := starts(3); !slices.Equal(got, []time.Duration{0, 0, 0}) {
			t.Errorf("before any crash: %v", got)
		}
		talks.fell()
		if got := starts(3); !slices.Equal(got, []time.Duration{0, startPause, 2 * startPause}) {
			t.Errorf("after a crash: %v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), startPause/2)
		defer cancel()
		if first, second := talks.turn(ctx), talks.turn(ctx); first != nil || !errors.Is(second, context.DeadlineExceeded) {
			t.Errorf("with little time: %v, %v", first, second)
		}
		time.Sleep(crashTime)
		if got := starts(3); !slices.Equal(got, []time.Duration{0, 0, 0}) {
			t.Errorf("long after a crash: %v", got)
		}
	})
}

func TestReadGreeting(t *testing.T) {
	bad := []string{`[]`, `null`, `{}`, `{"protocolVersion":1}`, `{"protocolVersion":"2030-01-01"}`, `{"ProtocolVersion":"2025-11-25"}`}
	for _, raw := range bad {
		if g, err := readGreeting(json.RawMessage(raw)); err == nil {
			t.Errorf("%s: %+v", raw, g)
		}
	}
	for _, v := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"} {
		g, err := readGreeting(json.RawMessage(`{"protocolVersion":"` + v + `","capabilities":{"tools":{}},"instructions":5}`))
		if err != nil || g.version != v || !g.hasTools || g.saysChanges || g.instructions != "" {
			t.Errorf("%s: %+v, error %v", v, g, err)
		}
	}
}
