package activity

import (
	"errors"
	"time"
)

// draft is an entry before it has its place in the chain.
type draft struct {
	kind  Kind
	id    string // KindEnd and KindRepeat
	of    int64  // KindEnd and KindRepeat
	owed  bool   // KindEnd only: room was made for it when the record began
	body  body
	facts Facts
	// redacts is what the entry erases of another record.
	redacts *Redaction
}

// size is the most that the entry takes in the file.
func (d *draft) size() int64 {
	return int64(lineExtra + prefixMax + len(d.body.data) - d.body.commits + 1)
}

// stamp is the place that an entry got.
type stamp struct {
	seq  int64
	id   string
	time time.Time
}

var errClosed = errors.New("the activity log is closed")

// endRoom is the room that is kept for the outcome of a record that has begun.
// An outcome that is longer takes what else there is; where there is nothing
// else, it is cut.
const endRoom = 1 << 10
