package activity

import (
	"log/slog"

	"mcpproxy/internal/problem"
)

// recorder writes records into the spool: within their bounds and without
// secrets.
type recorder struct {
	spool       *spool
	logger      *slog.Logger
	maxResponse int
	buffers     bufferPool
}

// running is a record between Begin and End.
type running struct {
	seq   int64
	facts Facts
}

// write writes a record, or the beginning of one. It sets the ID and the
// Timestamp of r. Its error is an AUDIT_UNAVAILABLE problem.
func (c *recorder) write(k Kind, r *Record) (running, error) {
	p := payload{Record: *r, kind: k}
	bound(&p.Record, c.maxResponse)
	buf := c.buffers.get()
	defer c.buffers.put(buf)
	facts := FactsOf(&p.Record)
	st, err := c.spool.append(&draft{kind: k, body: buf.body(&p), facts: facts, redacts: p.redacts()})
	if err != nil {
		return running{}, unavailable(err)
	}
	r.ID, r.Timestamp = st.id, st.time
	facts.Time = st.time.UnixMicro()
	return running{seq: st.seq, facts: facts}, nil
}

// tell puts on record what happened to the log itself.
func (c *recorder) tell(notes []string) {
	for _, note := range notes {
		c.logger.Error("the activity log was damaged", "what", note)
		r := Record{Type: System, Status: Failed, ErrorMessage: note, Metadata: Metadata{Action: "activity_log_damaged"}}
		if _, err := c.write(KindWhole, &r); err != nil {
			c.logger.Error("damage of the activity log cannot be put on record", "error", err)
		}
	}
}

func unavailable(err error) error {
	return problem.New(problem.AuditUnavailable,
		"The activity log cannot be written, and nothing is done without a record.",
		"Make room on the disk of the data directory, or see `mcpproxy status`, and try again.").Because(err)
}
