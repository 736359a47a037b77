package activity

import "fmt"

// Health is how the log is. Degraded means that records cannot be written, or
// that the database is away and they wait in the spool.
type Health struct {
	Degraded bool   `json:"degraded"`
	Message  string `json:"message,omitempty"`
	Backlog  int64  `json:"backlog"`     // entries that are not in the database yet
	Spool    int64  `json:"spool_bytes"` // size of the spool on disk
}

// Health says how the log is. It waits for nothing.
func (l *Log) Health() Health {
	l.spool.mu.Lock()
	h := Health{Backlog: l.spool.durable.seq - l.spool.projected, Spool: l.spool.bytes()}
	failure, full := l.spool.failure, h.Spool >= l.spool.maxBytes
	l.spool.mu.Unlock()
	l.mu.Lock()
	storeErr, waiting := l.storeErr, len(l.unwritten)
	l.mu.Unlock()
	switch {
	case failure != nil:
		h.Message = fmt.Sprintf("records cannot be written: %v", failure)
	case full:
		h.Message = fmt.Sprintf("records cannot be written: the spool has reached its limit of %d bytes", l.spool.maxBytes)
	case waiting > 0:
		h.Message = fmt.Sprintf("%d outcomes wait to be written", waiting)
	case storeErr != nil:
		h.Message = fmt.Sprintf("the database is not available, records wait in the spool: %v", storeErr)
	}
	h.Degraded = h.Message != ""
	return h
}
