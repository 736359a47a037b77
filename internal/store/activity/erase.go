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

// eachLineOfRecord calls fn with the offset and the payload of each line that belongs to a record. data begins at the
// start of a line.
func eachLineOfRecord(data []byte, id string, fn func(at int, payload []byte) error) error {
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

// eraseFields overwrites fields of a record in the files of the spool and in the second copy.
func (s *spool) eraseFields(r FieldErasure) error {
	m := s.snapshot()
	for i := range m.segments {
		if err := m.segments[i].eraseFields(r); err != nil {
			return fmt.Errorf("erase from the spool: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.writing {
		s.writeDone.Wait()
	}
	return s.recent.eraseFields(r)
}

// eraseFields overwrites fields of a record in the file of the segment. It writes the mark of the erasure before it
// overwrites the value, so that killing the process does not leave a field that looks damaged.
func (s *segment) eraseFields(r FieldErasure) (err error) {
	f, err := os.OpenFile(s.path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the segment was pruned in the meantime
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
	err = eachLineOfRecord(data, r.ID, func(at int, payload []byte) error {
		erased, had := erasePayloadFields(payload, r.Fields, r.At, true)
		if !had {
			return nil
		}
		changed = true
		sealed, open, _ := splitPayload(payload)
		var errs []error
		_ = eachStoredField(open, func(field storedField) {
			if !slices.Contains(r.Fields, field.name) {
				return
			}
			from := len(sealed) + 1 + field.at
			for _, part := range [][2]int{{from, from + minContentLen}, {from + minContentLen, from + len(field.content)}} {
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

// eraseFields overwrites fields of a record in both halves of the copy.
func (r *recentCopy) eraseFields(what FieldErasure) (err error) {
	defer r.recoverFault(debug.SetPanicOnFault(true), &err)
	for _, half := range r.halves {
		if s, ok := parseChainLines(half); ok {
			clear(s.rest) // bytes that an earlier use of this half left
		}
		_ = eachLineOfRecord(half, what.ID, func(at int, payload []byte) error {
			if erased, had := erasePayloadFields(payload, what.Fields, what.At, true); had {
				copy(half[at:], erased)
			}
			return nil
		})
	}
	return nil
}
