package activity

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"mcpproxy/internal/problem"
)

// Redaction is what one entry erases: fields of a record.
type Redaction struct {
	ID     string
	Fields []Field
	At     time.Time // whole seconds
}

// redacts is what the payload erases, but for the time.
func (p *payload) redacts() *Redaction {
	said := p.Metadata.Redacted
	if p.kind != KindWhole || said == nil {
		return nil
	}
	return &Redaction{ID: said.ID, Fields: said.Fields}
}

// Erase returns the payload of an entry of the record without what the redaction is about.
func (r *Redaction) Erase(payload []byte) []byte {
	erased, _ := erase(payload, r.Fields, r.At, false)
	return erased
}

// Stored is a record as the log has it: the entry that began it and the one that ended
// it, or counted a refusal last, with their places in the chain. One of them may not
// be there.
type Stored struct {
	Entry, Outcome []byte
	Seq, EndSeq    int64
	Hash, EndHash  []byte
}

// look finds which of the fields the record has, and which are erased already.
func (s *Stored) look(fields []Field) (there, already []Field, old bool) {
	for _, payload := range [][]byte{s.Entry, s.Outcome} {
		if len(payload) == 0 {
			continue
		}
		_, open, before := parts(payload)
		old = old || before
		_ = eachOpen(open, func(f openField) {
			switch {
			case !slices.Contains(fields, f.name):
			case f.erased() == nil && !slices.Contains(there, f.name):
				there = append(there, f.name)
			case f.erased() != nil:
				already = append(already, f.name)
			}
		})
	}
	return there, already, old
}

// Redact erases fields of a record, for good: the values, what they are found by, and what the
// files of the log hold of them. by says who asks. That it was done is a record of its own,
// which comes first. Its problems are NOT_FOUND, AMBIGUOUS, INVALID_PARAMETER and
// CONFLICT.
func (l *Log) Redact(ctx context.Context, by Record, idOrPrefix string, fields []Field) (Record, error) {
	l.redacting.Lock()
	defer l.redacting.Unlock()
	r, err := l.Get(ctx, idOrPrefix)
	if err != nil {
		return r, err
	}
	if r.Status == Pending {
		return r, problem.Newf(problem.Conflict, "The call of record %s is under way.", r.ID).WithHint("Try again when it has ended.")
	}
	stored, err := l.store.Stored(ctx, r.ID)
	if err != nil {
		return r, l.queryError(ctx, err)
	}
	there, already, old := stored.look(fields)
	for _, f := range fields {
		if slices.Contains(there, f) || slices.Contains(already, f) {
			continue
		}
		if old {
			return r, problem.Newf(problem.Conflict, "Record %s was written by an earlier version, which chained its values as they are: nothing of it can be erased without breaking the chain.", r.ID).
				WithHint("It goes with the retention: see activity_retention_days.")
		}
		return r, problem.Newf(problem.InvalidParameter, "Record %s has no %s.", r.ID, f).With("parameter", "field").With("value", string(f))
	}
	if len(there) == 0 {
		return r, nil
	}
	by.Type, by.Status = System, Success
	by.Metadata = Metadata{Action: "redact", Redacted: &Redacted{r.ID, there}}
	if err := l.Append(&by); err != nil {
		return r, err
	}
	return l.Get(ctx, r.ID) // which waits for it
}

// Redaction is what the entry erases; ok is false of most.
func (e *Entry) Redaction() (r Redaction, ok bool) {
	if e.Redacts == nil {
		return r, false
	}
	return Redaction{e.Redacts.ID, e.Redacts.Fields, time.UnixMicro(e.Facts.Time).UTC().Truncate(time.Second)}, true
}

// linesOf calls fn for the lines of a record in data, which begins with a whole line: with the place of
// each and its payload.
func linesOf(data []byte, id string, fn func(at int, payload []byte) error) error {
	start := []byte(`{"id":"` + id + `"`)
	for from := 0; ; {
		n := bytes.Index(data[from:], start)
		if n < 0 {
			return nil
		}
		at := from + n
		from = at + len(start)
		if line := at - hexLen - 1; line < 0 || line > 0 && data[line-1] != '\n' {
			continue
		}
		end := bytes.IndexByte(data[at:], '\n')
		if end < 0 {
			return nil
		}
		if err := fn(at, data[at:at+end]); err != nil {
			return err
		}
	}
}

// erase writes over what the files of the spool hold of fields of a record, and what
// the second copy does.
func (s *spool) erase(r Redaction) error {
	m := s.mark()
	for i := range m.segments {
		if err := m.segments[i].erase(r); err != nil {
			return fmt.Errorf("erase from the spool: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.writing {
		s.wrote.Wait()
	}
	return s.recent.erase(r)
}

// erase writes over fields of a record. Each is marked first, so that nobody takes
// what a kill leaves of it for damage.
func (s *segment) erase(r Redaction) (err error) {
	f, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // pruned meanwhile
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	data, err := readRange(f, 0, s.size)
	if err != nil {
		return err
	}
	changed := false
	err = linesOf(data, r.ID, func(at int, payload []byte) error {
		erased, had := erase(payload, r.Fields, r.At, true)
		if !had {
			return nil
		}
		changed = true
		sealed, open, _ := parts(payload)
		var errs []error
		_ = eachOpen(open, func(field openField) {
			if !slices.Contains(r.Fields, field.name) {
				return
			}
			from := len(sealed) + 1 + field.at
			for _, part := range [][2]int{{from, from + erasedLen}, {from + erasedLen, from + len(field.inner)}} {
				_, err := f.WriteAt(erased[part[0]:part[1]], int64(at+part[0]))
				errs = append(errs, err)
			}
		})
		return errors.Join(errs...)
	})
	if err == nil && changed {
		err = f.Sync()
	}
	return err
}

// erase writes over fields of a record.
func (r *recent) erase(what Redaction) (err error) {
	defer r.faults(debug.SetPanicOnFault(true), &err)
	for _, half := range r.halves {
		if s, ok := readStretch(half); ok {
			clear(s.rest) // what an earlier turn has left
		}
		_ = linesOf(half, what.ID, func(at int, payload []byte) error {
			if erased, had := erase(payload, what.Fields, what.At, true); had {
				copy(half[at:], erased)
			}
			return nil
		})
	}
	return nil
}
