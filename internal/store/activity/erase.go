package activity

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"slices"
)

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
			for _, part := range [][2]int{{from, from + innerLen}, {from + innerLen, from + len(field.inner)}} {
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
		if s, ok := readByteRange(half); ok {
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
