package store

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"mcpproxy/internal/testutil/volume"
)

// drawColumn draws the values of a chunk. The number of distinct values is random.
func drawColumn(t *rapid.T) []uint64 {
	distinct := rapid.SampledFrom([]int{1, 2, 255, 256, 257, maxListed, maxListed + 1, chunkSize}).Draw(t, "distinct")
	values := make([]uint64, chunkSize)
	step := rapid.Uint64Range(1, 1<<40).Draw(t, "step")
	for i := range values {
		values[i] = uint64(i%distinct) * step
	}
	return values
}

func TestColumnsComeBackAndFilter(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		values := drawColumn(t)
		data := encodeColumn(values)
		c, err := parseColumn(data)
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.decodeValues()
		if err != nil || !slices.Equal(got, values) {
			t.Fatalf("decoding gave different values: %v", err)
		}
		wanted := rapid.SliceOfN(rapid.OneOf(rapid.SampledFrom(values), rapid.Uint64()), 1, 3).Draw(t, "wanted")
		sel := make([]uint64, chunkWords)
		for i := range sel {
			sel[i] = rapid.Uint64().Draw(t, "selected")
		}
		want := slices.Clone(sel)
		for i, v := range values {
			if !slices.Contains(wanted, v) {
				want[i/64] &^= 1 << (i % 64)
			}
		}
		if c.deselectUnwantedRecords(wanted, sel); !slices.Equal(sel, want) {
			t.Fatalf("selected %x, want %x", sel, want)
		}
	})
}

func TestColumnsAreSmall(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	same := make([]uint64, chunkSize)
	few, many := slices.Clone(same), slices.Clone(same)
	for i := range same {
		few[i], many[i] = uint64(i%10), uint64(i)
	}
	for _, tt := range []struct {
		values []uint64
		max    int
	}{{same, 11}, {few, chunkSize + 83}, {many, 8*chunkSize + 3}} {
		if n := len(encodeColumn(tt.values)); n > tt.max {
			t.Errorf("got %d bytes, want at most %d", n, tt.max)
		}
	}
}

func FuzzColumn(f *testing.F) {
	f.Add(encodeColumn(make([]uint64, chunkSize)), uint64(0))
	f.Add(encodeRawColumn(make([]uint64, chunkSize)), uint64(1))
	f.Add([]byte{2, 1, 0}, uint64(1))
	f.Fuzz(func(t *testing.T, data []byte, want uint64) {
		c, err := parseColumn(data)
		if err != nil {
			if !errors.Is(err, errDamaged) {
				t.Fatal(err)
			}
			return
		}
		sel := make([]uint64, chunkWords)
		sel[0] = ^uint64(0)
		c.deselectUnwantedRecords([]uint64{want}, sel)
		c.decodeValues() //nolint:errcheck // it must not panic
	})
}
