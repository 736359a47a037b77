package app

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// headroom is the garbage, in bytes, that may accumulate between collections.
const headroom = 32 << 20

// maxPercent prevents that a tiny heap disables the collector. A large heap grows by minPercent, less than the default, because nothing else limits the
// memory of a daemon with many tools.
const (
	maxPercent = 1000
	minPercent = 75
)

// tuneGC leaves the heap at least headroom to grow into between two collections. With few tools, the live heap is so small that
// at the usual 100 % collections take a quarter of the time of a call. With many tools they take little. It follows the live
// heap after each collection until the returned function is called.
//
// When the heap grows fast, as while many servers list their tools for the first time, the pace comes too late on a busy
// machine. A memory limit, which follows the live heap too, makes the collector run nevertheless.
func tuneGC() (stop func()) {
	var stopped atomic.Bool
	before, limit := debug.SetGCPercent(maxPercent), debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(limit, memoryLimit(0)))
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
			debug.SetGCPercent(gcPercent(live))
			debug.SetMemoryLimit(min(limit, memoryLimit(live)))
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

// memoryLimit returns the memory limit for a live heap of this size: the heap that gcPercent allows, and room for stacks and
// other memory.
func memoryLimit(live uint64) int64 {
	heap := live + live*uint64(gcPercent(live))/100
	return int64(heap + 2*headroom)
}

// gcPercent returns the GC percentage for a live heap of this size.
func gcPercent(live uint64) int {
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
