package store

import "mcpproxy/internal/store/activity"

// activityIndex is what is kept in memory of the activity: where its records are, and
// the columns of the newest, which are not in a chunk yet.
type activityIndex struct {
	firstKey int64 // older records are pruned
	nextKey  int64
	// chunks are those in the database, without a gap; the first is number
	// firstChunk.
	firstChunk int64
	chunks     []chunkInfo
	tail       tailColumns
}

type chunkInfo struct {
	minTime, maxTime int64
	segments         []textSegment // of the text index, when it is made
	refused, deleted *bitmap       // of its records; what is gone is not refused
	refusedBytes     int64
	missingColumns   [fieldCount]bool // columns that there were not yet when it was made
}

// textSegment is a stretch of keys in the text index.
type textSegment struct{ first, past int64 }

// tailColumns holds the columns of the records from key first on, which is a multiple
// of chunkSize.
type tailColumns struct {
	first   int64
	columns [fieldCount][]uint64
	times   []int64
	// sizeOfMarked is the size of the refusals among them.
	refusedBytes int64
}

func (t *tailColumns) addRecord(values *[fieldCount]uint64, time int64) {
	for f := range t.columns {
		t.columns[f] = append(t.columns[f], values[f])
	}
	t.times = append(t.times, time)
}

// deleteMarkedRecords forgets the oldest chunk.
func (t *tailColumns) dropOldestChunk() {
	t.first += chunkSize
	for f := range t.columns {
		t.columns[f] = append([]uint64(nil), t.columns[f][chunkSize:]...)
	}
	t.times = append([]int64(nil), t.times[chunkSize:]...)
}

// keyAfterChunks is the key after the last chunk.
func (x *activityIndex) keyAfterChunks() int64 {
	return (x.firstChunk + int64(len(x.chunks))) * chunkSize
}

// refusalHash is what the records have in fieldType that the quota is for.
var refusalHash = hashText(string(activity.PolicyDecision))

// refusalBits returns the refusals among the types of a chunk's records.
func refusalBits(types []uint64, gone *bitmap) *bitmap {
	var b bitmap
	for i, v := range types {
		if v == refusalHash && !gone.has(i) {
			b[i/64] |= 1 << (i % 64)
		}
	}
	return b.nilIfEmpty()
}
