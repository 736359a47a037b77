package activity

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// openSpool opens the spool in dir and finds the end of its chain. A torn end is
// put aside. It returns what has to be told about that.
func (s *spool) openSpool() (notes []string, err error) {
	if s.lock, err = s.claim(); err != nil {
		return nil, err
	}
	s.wrote.L = &s.mu
	s.run = &run{}
	left, safe := s.openRecent()
	if notes, err = s.openSegments(); err != nil {
		return notes, err
	}
	note, err := s.readmit(left, safe)
	if note != "" {
		notes = append(notes, note)
	}
	s.good = s.durable
	return notes, errors.Join(err, dropTorn(s.dir))
}

// openSegments finds the end of the chain in the segments.
func (s *spool) openSegments() (notes []string, err error) {
	if s.segments, err = listSegments(s.dir); err != nil {
		return nil, err
	}
	for len(s.segments) > 0 {
		t, note, err := s.recover(s.segments[len(s.segments)-1])
		if note != "" {
			notes = append(notes, note)
		}
		if err != nil {
			return notes, err
		}
		if t != nil {
			s.last, s.fresh = s.segments[len(s.segments)-1], t.fresh
			s.continueFrom(*t)
			return notes, nil
		}
		s.segments = s.segments[:len(s.segments)-1]
	}
	s.continueFrom(tail{chain: newChain()})
	return notes, nil
}

func (s *spool) continueFrom(t tail) {
	s.chain = t.chain
	s.head = link{t.seq, t.hash}
	s.durable = s.head
	s.ids = after(max(t.at, s.now().UnixMilli()))
}

// keepTorn is how many torn ends are kept.
const keepTorn = 4

// dropTorn removes the oldest of what was put aside.
func dropTorn(dir string) error {
	torn, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix+tornInfix+"*"))
	if err != nil || len(torn) <= keepTorn {
		return err
	}
	stamp := func(path string) string { return path[strings.LastIndex(path, tornInfix):] }
	slices.SortFunc(torn, func(a, b string) int { return cmp.Compare(stamp(a), stamp(b)) })
	for _, path := range torn[:len(torn)-keepTorn] {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// openRecent opens the second copy, and returns what an earlier process has left
// in it. Without one that lasts the spool goes on, with one that does not.
func (s *spool) openRecent() (left [2][]byte, safe int64) {
	s.recent = processRecent()
	if s.recentDir == "" {
		return left, 0
	}
	path, err := recentPath(s.recentDir, s.dir)
	var r *recent
	if err == nil {
		r, left, safe, err = openRecent(path)
	}
	if err != nil {
		s.logger.Warn("the newest entries are kept in one place only", "error", err)
		return left, 0
	}
	s.recent, s.kept = r, readEnds(r.ends)
	return left, safe
}

// readmit writes again what an earlier process had written and the disk has
// lost. Where the spool itself is gone, that is what was not safe by then.
func (s *spool) readmit(left [2][]byte, safe int64) (note string, err error) {
	st, ok := newest(left, 0)
	if !ok || st.last.seq < s.durable.seq {
		return "", s.recent.clear()
	}
	switch {
	case s.last == nil:
		if st = st.after(safe); len(st.lines) > 0 {
			s.chain = st.chain
			if st.prev.seq > safe {
				note = lostEntries(safe+1, st.prev.seq)
			}
		}
	case st.prev.seq <= s.durable.seq:
		m := s.mark()
		whole, _, err := m.whole(max(safe, st.prev.seq) + 1)
		if err != nil {
			return "", err
		}
		switch {
		case whole.seq < st.prev.seq && st.chain == s.chain: // damaged before
		case st.after(whole.seq).prev != whole:
			return "", s.recent.clear() // of another time
		default:
			st = st.after(whole.seq)
		}
	case st.chain != s.chain:
		return "", s.recent.clear()
	default:
		note = lostEntries(s.durable.seq+1, st.prev.seq)
	}
	if len(st.lines) == 0 {
		return note, s.recent.clear()
	}
	st.at = max(st.at, s.ids.ms)
	next, err := s.rewrite(s.chain, st, endRoom)
	if err != nil {
		return note, fmt.Errorf("write the newest entries again: %w", err)
	}
	s.segments = s.upTo(st.prev.seq, s.segments)
	s.goOnIn(next)
	s.continueFrom(tail{chain: s.chain, seq: st.last.seq, hash: st.last.hash, at: st.at})
	s.logger.Warn("entries that the disk had lost were written again from their second copy", "entries", st.last.seq-st.prev.seq)
	return note, s.recent.clear()
}

func lostEntries(from, to int64) string {
	return fmt.Sprintf("The spool has lost the entries from %d to %d.", from, to)
}

// whole returns the last entry up to which the segments have all from entry first
// on, and whether that is all that they have. A disk that died may have what was
// written last, but not all that was written before. Where not even the first
// segment can be read, the entry is number -1.
func (m *mark) whole(first int64) (last link, all bool, err error) {
	last.seq = -1
	for _, seg := range m.segments {
		next := m.after(seg.first)
		if next <= first {
			continue
		}
		data, err := os.ReadFile(seg.path)
		if errors.Is(err, os.ErrNotExist) {
			continue // pruned meanwhile
		}
		if err != nil {
			return last, false, fmt.Errorf("verify the spool: %w", err)
		}
		s, ok := readByteRange(data[:min(int64(len(data)), seg.size)])
		if !ok || last.seq >= 0 && last != s.prev {
			return last, false, nil
		}
		last = s.last
		if own := s.after(next - 1).prev; own.seq+1 == next {
			last = own // what follows is the rest of a write that has failed
		} else if len(s.rest) > 0 {
			return last, false, nil
		}
	}
	return last, true, nil
}
