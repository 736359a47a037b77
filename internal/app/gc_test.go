package app

import "testing"

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		live uint64
		want int
	}{{0, 1000}, {1 << 20, 1000}, {4 << 20, 800}, {16 << 20, 200}, {32 << 20, 100}, {40 << 20, 80}, {1 << 30, 75}} {
		if got := gcPercent(c.live); got != c.want {
			t.Errorf("percent(%d) = %d, want %d", c.live, got, c.want)
		}
	}
}

// The memory limit leaves room for the growth of the heap between two collections.
func TestMemory(t *testing.T) {
	for _, live := range []uint64{0, 1 << 20, 32 << 20, 1 << 30} {
		grown := live + live*uint64(gcPercent(live))/100
		if got := uint64(memoryLimit(live)); got < grown+headroom || got > 2*grown+3*headroom {
			t.Errorf("memory(%d) = %d, the heap grows to %d", live, got, grown)
		}
	}
}
