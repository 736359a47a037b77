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

// TestStartsAfterACrash: the first client that opens a new session does not wait, the others follow one after the other.
// Later, no client waits.
func TestStartsAfterACrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open sessionSet
		starts := func(n int) (after []time.Duration) {
			began := time.Now()
			for range n {
				go func() {
					if err := open.waitForCrashThrottle(t.Context()); err != nil {
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
		open.recordCrash()
		if got := starts(3); !slices.Equal(got, []time.Duration{0, crashStartInterval, 2 * crashStartInterval}) {
			t.Errorf("after a crash: %v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), crashStartInterval/2)
		defer cancel()
		if first, second := open.waitForCrashThrottle(ctx), open.waitForCrashThrottle(ctx); first != nil || !errors.Is(second, context.DeadlineExceeded) {
			t.Errorf("with little time: %v, %v", first, second)
		}
		time.Sleep(crashPeriod)
		if got := starts(3); !slices.Equal(got, []time.Duration{0, 0, 0}) {
			t.Errorf("long after a crash: %v", got)
		}
	})
}
