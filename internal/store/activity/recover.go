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

// openSpool locks and opens the spool and finds the end of its chain. It moves a torn end to a separate file. The
// returned notes describe damage, for the log.
func (s *spool) openSpool() (notes []string, err error) {
	if s.lock, err = s.lockDir(); err != nil {
		return nil, err
	}
	s.writeDone.L = &s.mu
	s.run = &writeRun{}
	left, safe := s.openSecondCopy()
	if notes, err = s.recoverSegments(); err != nil {
		return notes, err
	}
	note, err := s.restoreFromCopy(left, safe)
	if note != "" {
		notes = append(notes, note)
	}
	s.synced = s.durable
	return notes, errors.Join(err, removeOldTornFiles(s.dir))
}

// recoverSegments finds the end of the chain in the segments.
func (s *spool) recoverSegments() (notes []string, err error) {
	if s.segments, err = listSegments(s.dir); err != nil {
		return nil, err
	}
	for len(s.segments) > 0 {
		t, note, err := s.recoverSegmentTail(s.segments[len(s.segments)-1])
		if note != "" {
			notes = append(notes, note)
		}
		if err != nil {
			return notes, err
		}
		if t != nil {
			s.lastSegment, s.needsNewSegment = s.segments[len(s.segments)-1], t.needsNewSegment
			s.continueChain(*t)
			return notes, nil
		}
		s.segments = s.segments[:len(s.segments)-1]
	}
	s.continueChain(chainTail{chain: newChainName()})
	return notes, nil
}

// continueChain makes the spool append new entries after the end t of the chain.
func (s *spool) continueChain(t chainTail) {
	s.chain = t.chain
	s.lastEncoded = chainLink{t.seq, t.hash}
	s.durable = s.lastEncoded
	s.ids = newULIDGeneratorAfter(max(t.at, s.now().UnixMilli()))
}

// maxTornFiles is the maximum number of files with torn ends that are kept.
const maxTornFiles = 4

// removeOldTornFiles removes the oldest files with torn ends.
func removeOldTornFiles(dir string) error {
	torn, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix+tornInfix+"*"))
	if err != nil || len(torn) <= maxTornFiles {
		return err
	}
	stamp := func(path string) string { return path[strings.LastIndex(path, tornInfix):] }
	slices.SortFunc(torn, func(a, b string) int { return cmp.Compare(stamp(a), stamp(b)) })
	for _, path := range torn[:len(torn)-maxTornFiles] {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// openSecondCopy opens the second copy, and returns the entries that an earlier process left in it. If a copy that
// survives the process cannot be created, the spool uses a copy in the memory of the process.
func (s *spool) openSecondCopy() (left [2][]byte, safe int64) {
	s.recent = newInProcessCopy()
	if s.recentDir == "" {
		return left, 0
	}
	path, err := recentCopyPath(s.recentDir, s.dir)
	var r *recentCopy
	if err == nil {
		r, left, safe, err = openRecentCopy(path)
	}
	if err != nil {
		s.logger.Warn("the newest entries are stored in one location only", "error", err)
		return left, 0
	}
	s.recent, s.keptOutcomes = r, readOutcomeBackup(r.outcomesFile)
	return left, safe
}

// restoreFromCopy writes the entries again that an earlier process wrote and the disk lost. If the whole spool was
// lost, it writes the entries after safe.
func (s *spool) restoreFromCopy(left [2][]byte, safe int64) (note string, err error) {
	st, ok := joinCopyHalves(left, 0)
	if !ok || st.last.seq < s.durable.seq {
		return "", s.recent.clear()
	}
	switch {
	case s.lastSegment == nil:
		if st = st.dropUpTo(safe); len(st.lines) > 0 {
			s.chain = st.chain
			if st.prev.seq > safe {
				note = lostEntriesNote(safe+1, st.prev.seq)
			}
		}
	case st.prev.seq <= s.durable.seq:
		m := s.snapshot()
		whole, _, err := m.lastWholeEntry(max(safe, st.prev.seq) + 1)
		if err != nil {
			return "", err
		}
		switch {
		case whole.seq < st.prev.seq && st.chain == s.chain: // the spool was already damaged
		case st.dropUpTo(whole.seq).prev != whole:
			return "", s.recent.clear() // the copy belongs to an earlier chain
		default:
			st = st.dropUpTo(whole.seq)
		}
	case st.chain != s.chain:
		return "", s.recent.clear()
	default:
		note = lostEntriesNote(s.durable.seq+1, st.prev.seq)
	}
	if len(st.lines) == 0 {
		return note, s.recent.clear()
	}
	st.at = max(st.at, s.ids.ms)
	next, err := s.createReplacementSegment(s.chain, st, outcomeRoom)
	if err != nil {
		return note, fmt.Errorf("write the newest entries again: %w", err)
	}
	s.segments = s.keepSegmentsUpTo(st.prev.seq, s.segments)
	s.switchWriteTarget(next)
	s.continueChain(chainTail{chain: s.chain, seq: st.last.seq, hash: st.last.hash, at: st.at})
	s.logger.Warn("entries that the disk had lost were written again from their second copy", "entries", st.last.seq-st.prev.seq)
	return note, s.recent.clear()
}

func lostEntriesNote(from, to int64) string {
	return fmt.Sprintf("The spool has lost the entries from %d to %d.", from, to)
}

// lastWholeEntry returns the last entry up to which the segments are complete, starting at the entry first. all reports
// whether the segments contain nothing after that entry. A failed disk may have stored the newest bytes but not all
// older ones. If even the first segment is unreadable, the sequence number of the returned entry is -1.
func (m *spoolSnapshot) lastWholeEntry(first int64) (last chainLink, all bool, err error) {
	last.seq = -1
	for _, seg := range m.segments {
		next := m.firstSeqOfNextSegment(seg.first)
		if next <= first {
			continue
		}
		data, err := os.ReadFile(seg.path)
		if errors.Is(err, os.ErrNotExist) {
			continue // the segment was pruned in the meantime
		}
		if err != nil {
			return last, false, fmt.Errorf("verify the spool: %w", err)
		}
		s, ok := parseChainLines(data[:min(int64(len(data)), seg.size)])
		if !ok || last.seq >= 0 && last != s.prev {
			return last, false, nil
		}
		last = s.last
		if own := s.dropUpTo(next - 1).prev; own.seq+1 == next {
			last = own // a failed write left the rest
		} else if len(s.rest) > 0 {
			return last, false, nil
		}
	}
	return last, true, nil
}
