package store

import "mcpproxy/internal/store/activity"

// activityIndex is the index of the activity records in memory. It has the existing keys, facts about each chunk, and the
// columns of the newest records, which are not in a chunk yet.
type activityIndex struct {
	firstKey int64 // records with lower keys are pruned
	nextKey  int64
	// chunks are the chunks in the database, without gaps. The number of the first is firstChunk.
	firstChunk int64
	chunks     []chunkInfo
	tail       tailColumns
}

type chunkInfo struct {
	minTime, maxTime int64
	segments         []indexedKeyRange // segments of the text index; nil until the chunk is indexed
	refused, deleted *bitmap           // which records are refusals, and which refusals were pruned
	refusedBytes     int64
	missingColumns   [fieldCount]bool // columns that the chunk lacks because an older version wrote it
}

// indexedKeyRange is a range of keys [first, past) in the text index.
type indexedKeyRange struct{ first, past int64 }

// tailColumns holds the columns of the records from key first on, which is a multiple of chunkSize.
// These records are not in a chunk yet.
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

// dropOldestChunk removes the first chunkSize records.
func (t *tailColumns) dropOldestChunk() {
	t.first += chunkSize
	for f := range t.columns {
		t.columns[f] = append([]uint64(nil), t.columns[f][chunkSize:]...)
	}
	t.times = append([]int64(nil), t.times[chunkSize:]...)
}

// keyAfterChunks returns the key after the last chunk.
func (x *activityIndex) keyAfterChunks() int64 {
	return (x.firstChunk + int64(len(x.chunks))) * chunkSize
}

// refusalHash is the value of fieldType of refusals, which have a quota.
var refusalHash = hashText(string(activity.PolicyDecision))

// refusalBits returns which records of a chunk are refusals, by their types, without pruned ones.
func refusalBits(types []uint64, gone *bitmap) *bitmap {
	var b bitmap
	for i, v := range types {
		if v == refusalHash && !gone.has(i) {
			b[i/64] |= 1 << (i % 64)
		}
	}
	return b.nilIfEmpty()
}
