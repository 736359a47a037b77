package activity

import (
	"log/slog"

	"mcpproxy/internal/problem"
)

// recordWriter masks records, cuts them to their limits, and writes them into the spool.
type recordWriter struct {
	spool       *spool
	logger      *slog.Logger
	maxResponse int
	buffers     encodeBufferPool
}

// openRecord is a record that Begin wrote and that has no outcome yet.
type openRecord struct {
	seq   int64
	facts RecordFacts
}

// writeRecord writes a record, or the beginning of one. It sets the ID and the Timestamp of r. Any error is an
// AUDIT_UNAVAILABLE problem.
func (c *recordWriter) writeRecord(k EntryKind, r *Record) (openRecord, error) {
	p := payload{Record: *r, kind: k}
	maskAndLimitRecord(&p.Record, c.maxResponse)
	buf := c.buffers.get()
	defer c.buffers.put(buf)
	facts := NewRecordFacts(&p.Record)
	st, err := c.spool.appendEntry(&entryDraft{kind: k, body: buf.encodeBody(&p), facts: facts, redacts: p.requestedErasure()})
	if err != nil {
		return openRecord{}, newUnwritableError(err)
	}
	r.ID, r.Timestamp = st.id, st.time
	facts.Time = st.time.UnixMicro()
	return openRecord{seq: st.seq, facts: facts}, nil
}

// recordDamage logs notes about damage to the log itself, and writes each as a record.
func (c *recordWriter) recordDamage(notes []string) {
	for _, note := range notes {
		c.logger.Error("the activity log was damaged", "what", note)
		r := Record{Type: System, Status: Failed, ErrorMessage: note, Metadata: Metadata{Action: "activity_log_damaged"}}
		if _, err := c.writeRecord(KindWhole, &r); err != nil {
			c.logger.Error("damage of the activity log cannot be recorded", "error", err)
		}
	}
}

func newUnwritableError(err error) error {
	return problem.New(problem.AuditUnavailable,
		"The activity log cannot be written, and nothing is done without a record.",
		"Free space on the disk of the data directory, or see `mcpproxy status`, and try again.").Because(err)
}
