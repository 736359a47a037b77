package activity

import (
	"errors"
	"time"
)

// entryDraft is an entry that has no number and no hash yet.
type entryDraft struct {
	kind         EntryKind
	id           string // KindEnd and KindRepeat
	of           int64  // KindEnd and KindRepeat
	roomReserved bool   // KindEnd only: the begin of the record reserved room for it
	body         encodedBody
	facts        RecordFacts
	// redacts says which fields of another record the entry erases.
	redacts *FieldErasure
}

// maxSize returns the largest size that the entry can take in the file.
func (d *entryDraft) maxSize() int64 {
	return int64(lineOverhead + prefixMax + len(d.body.data) - d.body.commitmentsLen + 1)
}

// entryIdentity is the number, ID and time that the spool gave to an entry.
type entryIdentity struct {
	seq  int64
	id   string
	time time.Time
}

var errClosed = errors.New("the activity log is closed")

// outcomeRoom is the room that the spool reserves for the outcome of a record that has begun. A longer
// outcome takes other free room. If there is none, the outcome is cut.
const outcomeRoom = 1 << 10
