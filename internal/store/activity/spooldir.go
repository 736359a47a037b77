package activity

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"mcpproxy/internal/ondisk"
)

// spoolDir is the directory of the spool. It handles the files, but does not have the state of the spool.
type spoolDir struct {
	dir      string
	now      func() time.Time
	openFile func(path string) (spoolFile, error)
	logger   *slog.Logger
}

// minFreeBytes is the minimum free space on the disk. A database needs at least that much.
const minFreeBytes = 128 << 10

// lockDir creates the directory if needed, and locks it.
func (d *spoolDir) lockDir() (lock *ondisk.LockedFile, err error) {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, err
	}
	if lock, err = ondisk.LockFile(d.lockPath()); err != nil {
		return nil, fmt.Errorf("another process writes to %s: %w", d.dir, err)
	}
	return lock, nil
}

func (d *spoolDir) lockPath() string { return filepath.Join(d.dir, "lock") }

// probeDisk writes a byte and syncs it, to check that the disk works.
func (d *spoolDir) probeDisk(lock *ondisk.LockedFile) error {
	if _, err := lock.WriteAt([]byte{1}, 0); err != nil {
		return err
	}
	if err := lock.Sync(); err != nil {
		return err
	}
	if free, known := ondisk.FreeSpace(d.dir); known && free < minFreeBytes {
		return fmt.Errorf("the disk of %s is full: %d bytes are free", d.dir, free)
	}
	return nil
}

// writeTarget is an open segment to write to.
type writeTarget struct {
	file     spoolFile
	segment  *segment
	reserved int64
}

// createSegment creates a segment file with its header and first lines, and reserves room for more lines.
func (d *spoolDir) createSegment(path, chain string, from chainLink, at int64, lines []byte, room int64) (writeTarget, error) {
	f, err := d.openFile(path)
	if err != nil {
		return writeTarget{}, err
	}
	p := writeTarget{file: f, segment: &segment{first: from.seq + 1, path: path}}
	head := appendSegmentHeader(nil, from.hash, segmentHeader{Chain: chain, First: from.seq + 1, At: at})
	p.segment.size = int64(len(head) + len(lines))
	if p.reserved, err = f.Reserve(p.segment.size + room); err != nil {
		return p, err
	}
	for _, part := range [][]byte{head, lines} {
		if _, err := f.Write(part); err != nil {
			return p, err
		}
	}
	return p, nil
}

// createReplacementSegment creates a segment that replaces everything after an entry. The file is renamed to its final
// name after it is synced.
func (d *spoolDir) createReplacementSegment(chain string, again chainLines, room int64) (writeTarget, error) {
	path := segmentPath(d.dir, again.prev.seq+1)
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return writeTarget{}, err
	}
	p, err := d.createSegment(next, chain, again.prev, again.at, again.lines, room)
	if err == nil {
		err = p.file.Sync()
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err == nil {
		err = ondisk.SyncDir(d.dir)
	}
	if err != nil && p.file != nil {
		err = errors.Join(err, p.file.Close())
	}
	if err == nil {
		p.segment.path = path
	}
	return p, err
}

// listChainSegments returns the existing segments of the chain. They may have changed a moment ago, because a disk can
// be removed and attached again. The second result is base, or the last entry in these segments if that is lower.
func (d *spoolDir) listChainSegments(chain string, base int64) (there []*segment, _ int64, err error) {
	all, err := listSegments(d.dir)
	if err != nil {
		return nil, 0, err
	}
	last := int64(-1)
	for _, seg := range all {
		t, ok, err := readSegmentTail(seg)
		if err != nil {
			return nil, 0, err
		}
		if ok && t.chain == chain {
			there, last = append(there, seg), t.seq
		}
	}
	if last >= 0 {
		base = min(base, last)
	}
	return there, base, nil
}

// keepSegmentsUpTo returns the segments that begin at or before the entry seq. It removes later segments, because their
// entries are written again.
func (d *spoolDir) keepSegmentsUpTo(seq int64, there []*segment) (kept []*segment) {
	for _, seg := range there {
		switch {
		case seg.first <= seq:
			kept = append(kept, seg)
		case seg.path != segmentPath(d.dir, seq+1):
			if err := os.Remove(seg.path); err != nil {
				d.logger.Warn("a segment file of the activity log cannot be removed", "error", err)
			}
		}
	}
	return kept
}

// recoverSegmentTail finds the end of the chain in the last segment. If the segment has no valid line,
// recoverSegmentTail renames the file and returns a nil tail.
func (d *spoolDir) recoverSegmentTail(last *segment) (*chainTail, string, error) {
	f, err := os.Open(last.path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	t, ok, err := findChainTail(f, last.size)
	if err != nil {
		return nil, "", err
	}
	rest, err := readRange(f, t.size, last.size)
	if err != nil {
		return nil, "", err
	}
	if !ok {
		aside, note := tornFilePath(last.path, d.now()), ""
		if !isTornByKill(rest) {
			note = fmt.Sprintf("A segment of the spool without a readable entry was moved to %s.", filepath.Base(aside))
		}
		return nil, note, os.Rename(last.path, aside)
	}
	if t.chain == "" { // unreadable header: continue as a new chain
		t.chain, t.needsNewSegment = newChainName(), true
	}
	note := ""
	if len(rest) > 0 {
		note = d.cutTornEnd(last, &t, rest)
	} else if os.Truncate(last.path, t.size) != nil { // removes the reserved bytes
		t.needsNewSegment = true
	}
	last.size = t.size
	return &t, note, nil
}

// cutTornEnd cuts off a torn end after it has saved a copy. If the disk is too full for the copy, the torn end stays,
// and the spool continues in a new segment. Bytes of a killed process are always cut off, because none of them was
// acknowledged.
func (d *spoolDir) cutTornEnd(last *segment, t *chainTail, rest []byte) (note string) {
	size, ordinary := len(rest), isTornByKill(rest)
	aside := tornFilePath(last.path, d.now())
	err := os.WriteFile(aside, rest, 0o600) // the bytes may contain the beginning of a record
	if err == nil || ordinary {
		err = os.Truncate(last.path, t.size)
	}
	t.needsNewSegment = t.needsNewSegment || err != nil
	switch {
	case ordinary:
		d.logger.Info("removed an incomplete entry at the end of the spool: the process was killed while it wrote the entry", "bytes", size)
		return ""
	case err != nil:
		return fmt.Sprintf("The spool ends in %d bytes that are not an entry; it continues in a new segment.", size)
	}
	return fmt.Sprintf("The spool ended with %d bytes that are not an entry; they were moved to %s.", size, filepath.Base(aside))
}

// isTornByKill reports whether the bytes after the last valid line come from a killed process. Such bytes are the
// beginning of one entry. If the process was killed while it copied a piece, that piece may have a gap.
func isTornByKill(b []byte) bool {
	line := bytes.IndexByte(b, '\n')
	return line < 0 || len(b)-line <= hexLen && bytes.IndexByte(b[max(0, line-hexLen):], 0) >= 0
}
