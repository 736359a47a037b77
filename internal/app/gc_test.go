package app

import "testing"

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{{0, 1000}, {1 << 20, 1000}, {4 << 20, 800}, {16 << 20, 200}, {32 << 20, 100}, {1 << 30, 100}} {
		if got := percent(c.live); got != c.want {
			t.Errorf("percent(%d) = %d, want %d", c.live, got, c.want)
		}
	}
}
