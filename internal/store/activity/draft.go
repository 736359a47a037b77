package activity

import (
	"errors"
	"time"
)

// entryDraft is an entry that has no sequence number and no hash yet.
type entryDraft struct {
	kind         EntryKind
	id           string // KindEnd and KindRepeat
	of           int64  // KindEnd and KindRepeat
	roomReserved bool   // KindEnd only: the beginning of the record reserved room for this entry
	body         encodedBody
	facts        RecordFacts
	// redacts lists the fields of another record that the entry erases.
	redacts *FieldErasure
}

// maxSize returns the maximum size of the entry in the file.
func (d *entryDraft) maxSize() int64 {
	return int64(lineOverhead + prefixMax + len(d.body.data) - d.body.commitmentsLen + 1)
}

// entryIdentity contains the sequence number, ID and time that the spool assigned to an entry.
type entryIdentity struct {
	seq  int64
	id   string
	time time.Time
}

var errClosed = errors.New("the activity log is closed")

// outcomeRoom is the number of bytes that the spool reserves for the outcome of a record that has begun. A longer
// outcome uses other free space. If there is none, the outcome is shortened.
const outcomeRoom = 1 << 10
