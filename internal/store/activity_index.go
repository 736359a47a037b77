package store

import "mcpproxy/internal/store/activity"

// index is what is kept in memory of the activity: where its records are, and
// the columns of the newest, which are not in a chunk yet.
type index struct {
	firstKey int64 // older records are pruned
	nextKey  int64
	// chunks are those in the database, without a gap; the first is number
	// firstChunk.
	firstChunk int64
	chunks     []chunkInfo
	tail       tail
}

type chunkInfo struct {
	minTime, maxTime int64
	segments         []segment // of the text index, when it is made
	refused, gone    *bitmap   // of its records; what is gone is not refused
	refusedBytes     int64
	lacks            [fields]bool // columns that there were not yet when it was made
}

// segment is a stretch of keys in the text index.
type segment struct{ first, past int64 }

// tail holds the columns of the records from key first on, which is a multiple
// of chunkSize.
type tail struct {
	first   int64
	columns [fields][]uint64
	times   []int64
	// refusedBytes is the size of the refusals among them.
	refusedBytes int64
}

func (t *tail) add(values *[fields]uint64, time int64) {
	for f := range t.columns {
		t.columns[f] = append(t.columns[f], values[f])
	}
	t.times = append(t.times, time)
}

// drop forgets the oldest chunk.
func (t *tail) drop() {
	t.first += chunkSize
	for f := range t.columns {
		t.columns[f] = append([]uint64(nil), t.columns[f][chunkSize:]...)
	}
	t.times = append([]int64(nil), t.times[chunkSize:]...)
}

// pastChunks is the key after the last chunk.
func (x *index) pastChunks() int64 { return (x.firstChunk + int64(len(x.chunks))) * chunkSize }

// refusedType is what the records have in fieldType that the quota is for.
var refusedType = hashValue(string(activity.PolicyDecision))

// refusedIn returns the refusals among the types of a chunk's records.
func refusedIn(types []uint64, gone *bitmap) *bitmap {
	var b bitmap
	for i, v := range types {
		if v == refusedType && !gone.has(i) {
			b[i/64] |= 1 << (i % 64)
		}
	}
	return b.orNil()
}
