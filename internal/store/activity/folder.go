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

// folder is the directory of the spool. It knows what its files are, and nothing
// of what the spool is doing.
type folder struct {
	dir    string
	now    func() time.Time
	open   func(path string) (spoolFile, error)
	logger *slog.Logger
}

// minFree is what must be free on the disk; a database cannot go on with less.
const minFree = 128 << 10

// claim locks the folder, which is made when it is not there.
func (d *folder) claim() (lock *os.File, err error) {
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return nil, err
	}
	if lock, err = ondisk.LockFile(d.lockPath()); err != nil {
		return nil, fmt.Errorf("another process writes to %s: %w", d.dir, err)
	}
	return lock, nil
}

func (d *folder) lockPath() string { return filepath.Join(d.dir, "lock") }

// probe writes a byte and waits until it is on the disk.
func (d *folder) probe(lock *os.File) error {
	if _, err := lock.WriteAt([]byte{1}, 0); err != nil {
		return err
	}
	if err := lock.Sync(); err != nil {
		return err
	}
	if free, known := ondisk.FreeSpace(d.dir); known && free < minFree {
		return fmt.Errorf("the disk of %s is full: %d bytes are free", d.dir, free)
	}
	return nil
}

// place is a file to write to.
type place struct {
	file     spoolFile
	segment  *segment
	reserved int64
}

// newSegment makes the file of a segment, with the lines that it begins with and
// room for more.
func (d *folder) newSegment(path, chain string, from link, at int64, lines []byte, room int64) (place, error) {
	f, err := d.open(path)
	if err != nil {
		return place{}, err
	}
	p := place{file: f, segment: &segment{first: from.seq + 1, path: path}}
	head := appendHeader(nil, from.hash, header{Chain: chain, First: from.seq + 1, At: at})
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

// rewrite makes the segment that takes the place of everything after an entry.
// It has its name when it is on the disk.
func (d *folder) rewrite(chain string, again byteRange, room int64) (place, error) {
	path := segmentPath(d.dir, again.prev.seq+1)
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return place{}, err
	}
	p, err := d.newSegment(next, chain, again.prev, again.at, again.lines, room)
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

// there lists the segments of the chain that are there, which may be others than
// a moment ago: a disk can be taken away and come back. base is at most the last
// entry that they have, if there are any.
func (d *folder) there(chain string, base int64) (there []*segment, _ int64, err error) {
	all, err := listSegments(d.dir)
	if err != nil {
		return nil, 0, err
	}
	last := int64(-1)
	for _, seg := range all {
		t, ok, err := tailOf(seg)
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

// upTo keeps the segments that begin before an entry has ended. Those after it
// are written again.
func (d *folder) upTo(seq int64, there []*segment) (kept []*segment) {
	for _, seg := range there {
		switch {
		case seg.first <= seq:
			kept = append(kept, seg)
		case seg.path != segmentPath(d.dir, seq+1):
			if err := os.Remove(seg.path); err != nil {
				d.logger.Warn("a segment of the activity log cannot be removed", "error", err)
			}
		}
	}
	return kept
}

// recover finds the end of the chain in the last segment. A segment without one
// good line is put aside as a whole (nil tail).
func (d *folder) recover(last *segment) (*tail, string, error) {
	f, err := os.Open(last.path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	t, ok, err := findTail(f, last.size)
	if err != nil {
		return nil, "", err
	}
	rest, err := readRange(f, t.size, last.size)
	if err != nil {
		return nil, "", err
	}
	if !ok {
		aside, note := tornPath(last.path, d.now()), ""
		if !ordinary(rest) {
			note = fmt.Sprintf("A segment of the spool without a readable entry was put aside as %s.", filepath.Base(aside))
		}
		return nil, note, os.Rename(last.path, aside)
	}
	if t.chain == "" { // its header is unreadable: go on under a new name
		t.chain, t.fresh = newChain(), true
	}
	note := ""
	if len(rest) > 0 {
		note = d.cutTorn(last, &t, rest)
	} else if os.Truncate(last.path, t.size) != nil { // what was reserved
		t.fresh = true
	}
	last.size = t.size
	return &t, note, nil
}

// cutTorn takes the torn end off. When the disk is too full to keep it aside it
// stays where it is, and the spool goes on in a new segment; but what a kill
// leaves, in which nothing is that was acknowledged, goes.
func (d *folder) cutTorn(last *segment, t *tail, rest []byte) (note string) {
	size, ordinary := len(rest), ordinary(rest)
	aside := tornPath(last.path, d.now())
	err := os.WriteFile(aside, rest, 0o600) // it may hold the beginning of a record
	if err == nil || ordinary {
		err = os.Truncate(last.path, t.size)
	}
	t.fresh = t.fresh || err != nil
	switch {
	case ordinary:
		d.logger.Info("the end of an entry that was being written when the process was killed is cut off", "bytes", size)
		return ""
	case err != nil:
		return fmt.Sprintf("The spool ends in %d bytes that are no entry; it goes on in a new segment.", size)
	}
	return fmt.Sprintf("The spool ended in %d bytes that are no entry; they were put aside as %s.", size, filepath.Base(aside))
}

// ordinary reports whether the bytes from the last good link on are what a kill
// leaves: the beginning of one entry. When it was in the middle of copying a
// piece, there is a hole in that.
func ordinary(b []byte) bool {
	line := bytes.IndexByte(b, '\n')
	return line < 0 || len(b)-line <= hexLen && bytes.IndexByte(b[max(0, line-hexLen):], 0) >= 0
}
