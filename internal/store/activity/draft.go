package activity

import (
	"errors"
	"time"
)

// entryDraft is an entry before it has its place in the chain.
type entryDraft struct {
	kind         EntryKind
	id           string // KindEnd and KindRepeat
	of           int64  // KindEnd and KindRepeat
	roomReserved bool   // KindEnd only: room was made for it when the record began
	body         encodedBody
	facts        RecordFacts
	// redacts is what the entry erases of another record.
	redacts *Redaction
}

// maxSize is the most that the entry takes in the file.
func (d *entryDraft) maxSize() int64 {
	return int64(lineOverhead + prefixMax + len(d.body.data) - d.body.commitmentsLen + 1)
}

// entryIdentity is the place that an entry got.
type entryIdentity struct {
	seq  int64
	id   string
	time time.Time
}

var errClosed = errors.New("the activity log is closed")

// outcomeRoom is the room that is kept for the outcome of a record that has begun.
// An outcome that is longer takes what else there is; where there is nothing
// else, it is cut.
const outcomeRoom = 1 << 10
