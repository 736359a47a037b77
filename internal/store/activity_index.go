package store

import "mcpproxy/internal/store/activity"

// activityIndex is the in-memory index of the activity records. It contains the range of existing keys, facts about
// each chunk, and the columns of the newest records, which are not in a chunk yet.
type activityIndex struct {
	firstKey int64 // the lowest key; records with lower keys were pruned
	nextKey  int64
	// chunks describes the chunks in the database, without gaps. firstChunk is the number of the first one.
	firstChunk int64
	chunks     []chunkInfo
	tail       tailColumns
}

type chunkInfo struct {
	minTime, maxTime int64
	indexed          bool    // whether the text index contains the chunk
	refused, deleted *bitmap // the refusals, and the refusals that were pruned
	refusedBytes     int64
}

// tailColumns contains the columns of the newest records, which are not in a chunk yet. The first of them has the key
// first, which is a multiple of chunkSize.
type tailColumns struct {
	first   int64
	columns [fieldCount][]uint64
	times   []int64
	// refusedBytes is the size of the refusals in the tail.
	refusedBytes int64
}

func (t *tailColumns) addRecord(values *[fieldCount]uint64, time int64) {
	for f := range t.columns {
		t.columns[f] = append(t.columns[f], values[f])
	}
	t.times = append(t.times, time)
}

// dropOldestChunk removes the oldest chunkSize records.
func (t *tailColumns) dropOldestChunk() {
	t.first += chunkSize
	for f := range t.columns {
		t.columns[f] = append([]uint64(nil), t.columns[f][chunkSize:]...)
	}
	t.times = append([]int64(nil), t.times[chunkSize:]...)
}

// storedChunks returns the range of the chunks in the database.
func (x *activityIndex) storedChunks() []chunkRange {
	return []chunkRange{{0, x.firstChunk, x.firstChunk + int64(len(x.chunks))}}
}

// keyAfterChunks returns the first key that is not in a chunk.
func (x *activityIndex) keyAfterChunks() int64 {
	return (x.firstChunk + int64(len(x.chunks))) * chunkSize
}

// refusalHash is the value of fieldType for refusals, which have a separate quota.
var refusalHash = hashText(string(activity.PolicyDecision))

// refusalBits returns which records of a chunk are refusals that were not pruned. types contains their types.
func refusalBits(types []uint64, gone *bitmap) *bitmap {
	var b bitmap
	for i, v := range types {
		if v == refusalHash && !gone.has(i) {
			b[i/64] |= 1 << (i % 64)
		}
	}
	return b.nilIfEmpty()
}
