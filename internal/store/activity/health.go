package activity

import (
	"cmp"
	"fmt"
)

// Health is the state of the log. Degraded means that records cannot be written, or that the database is unavailable
// and records wait in the spool.
type Health struct {
	Degraded bool   `json:"degraded"`
	Message  string `json:"message,omitempty"`
	Backlog  int64  `json:"backlog"`     // number of entries that are not in the database yet
	Spool    int64  `json:"spool_bytes"` // size of the spool on disk
	Records  int64  `json:"records"`     // number of records in the database
	// Verified is the last result of Verify since the start.
	Verified *Verified `json:"verified,omitempty"`
	// Refused contains a message for each actor with very many refused calls.
	Refused []string `json:"-"`
}

// Health returns the state of the log. It does not wait.
func (l *Log) Health() Health {
	refused, records := l.refusals.floodMessages(), l.store.RecordCount()
	l.spool.mu.Lock()
	h := Health{Records: records, Verified: l.verified.Load(), Refused: refused, Backlog: l.spool.durable.seq - l.spool.projected, Spool: l.spool.diskSize()}
	failure, full := cmp.Or(l.spool.blockedBy, l.spool.writeError), h.Spool >= l.spool.maxBytes
	storeSick := l.spool.storeError
	l.spool.mu.Unlock()
	storeErr, waiting := l.progress.storeError(), l.outcomes.waitingCount()
	if s, ok := l.store.(SharedStore); ok && storeErr == nil {
		storeErr = s.HealthError() // a failure that occurred while nothing had to be written
	}
	switch {
	case failure != nil:
		h.Message = fmt.Sprintf("records cannot be written, calls are refused: %v", failure)
	case full:
		h.Message = fmt.Sprintf("records cannot be written: the spool has reached its limit of %d bytes", l.spool.maxBytes)
	case storeSick != nil:
		h.Message = fmt.Sprintf("calls are refused until the database can be written: %v", storeSick)
	case waiting > 0:
		h.Message = fmt.Sprintf("%d outcomes wait to be written", waiting)
	case storeErr != nil:
		h.Message = fmt.Sprintf("the database is not available, records wait in the spool: %v", storeErr)
	}
	h.Degraded = h.Message != ""
	return h
}
