//go:build unix

package compat

import (
	"context"
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
		var open sessions
		starts := func(n int) (after []time.Duration) {
			began := time.Now()
			for range n {
				go func() {
					if err := open.turn(t.Context()); err != nil {
						t.Error(err)
					}
					open.mu.Lock()
					defer open.mu.Unlock()
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
		open.fell()
		if got := starts(3); !slices.Equal(got, []time.Duration{0, startPause, 2 * startPause}) {
			t.Errorf("after a crash: %v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), startPause/2)
		defer cancel()
		if first, second := open.turn(ctx), open.turn(ctx); first != nil || !errors.Is(second, context.DeadlineExceeded) {
			t.Errorf("with little time: %v, %v", first, second)
		}
		time.Sleep(crashTime)
		if got := starts(3); !slices.Equal(got, []time.Duration{0, 0, 0}) {
			t.Errorf("long after a crash: %v", got)
		}
	})
}
