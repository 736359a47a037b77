package app

import "testing"

func TestConnsFor(t *testing.T) {
	for _, tt := range []struct {
		files       uint64
		tcp, socket int
	}{{0, 4_000, 1_000}, {1 << 40, 4_000, 1_000}, {20_000, 4_000, 1_000}, {4_096, 2_048, 512}, {1_024, 512, 128}, {256, 128, 32}, {1, 1, 1}} {
		if tcp, socket := connectionLimits(tt.files); tcp != tt.tcp || socket != tt.socket {
			t.Errorf("%d files: %d and %d connections", tt.files, tcp, socket)
		}
	}
}
