package app

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// headroom is how much garbage may gather before it is collected, in bytes.
const headroom = 32 << 20

// maxPercent keeps a tiny heap from switching the collector off. A large one may grow by
// minPercent: less than usual, since nothing else decides about the memory of a daemon with
// many tools.
const (
	maxPercent = 1000
	minPercent = 75
)

// paceGC leaves the heap at least headroom to grow into between two collections.
// The live heap of a daemon with few tools is so small that at the usual 100 %
// collecting takes a quarter of the time of a call; for a daemon with many
// tools it is little. It follows the live heap after each collection until
// the returned function is called.
//
// When the heap grows fast, as while many servers list their tools for the
// first time, the pace comes too late on a busy machine: a limit on the memory,
// which follows the live heap too, has it collected all the same.
func paceGC() (stop func()) {
	var stopped atomic.Bool
	before, limit := debug.SetGCPercent(maxPercent), debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(limit, memory(0)))
	var watch func()
	watch = func() {
		// The sentinel is garbage at once, so its cleanup runs after each
		// collection.
		sentinel := new([16]byte)
		runtime.AddCleanup(sentinel, func(struct{}) {
			if stopped.Load() {
				return
			}
			live := liveHeap()
			debug.SetGCPercent(percent(live))
			debug.SetMemoryLimit(min(limit, memory(live)))
			watch()
		}, struct{}{})
	}
	watch()
	return func() {
		stopped.Store(true)
		debug.SetGCPercent(before)
		debug.SetMemoryLimit(limit)
	}
}

// memory is the limit for a live heap of so many bytes: what the pace would let
// it grow to, and room for stacks and what is no heap.
func memory(live uint64) int64 {
	heap := live + live*uint64(percent(live))/100
	return int64(heap + 2*headroom)
}

// percent is the pace for a live heap of so many bytes.
func percent(live uint64) int {
	if live == 0 {
		return maxPercent
	}
	return max(minPercent, min(maxPercent, int(headroom*100/live)))
}

func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return sample[0].Value.Uint64()
}
