package approval

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"mcpproxy/internal/ondisk"
)

// looseLines is the number of obsolete lines that a file may have, in addition to the number of its current lines,
// before it is rewritten.
const looseLines = 1000

// denylistFile is the denylist file and its content. It is not safe for concurrent use.
type denylistFile struct {
	path             string
	handle           *os.File // nil until it is open
	entries          fileEntries
	restrictionsLost bool         // an earlier file was partially lost
	seed             sha256Digest // start of the chain
	head             chainLink    // last line
	size             int64
	// stale reports whether the file may differ from entries. If so, it is rewritten before the next write.
	stale bool
}

func newDenylistFile(path string) *denylistFile {
	return &denylistFile{path: path, entries: newFileEntries(0), stale: true}
}

func (f *denylistFile) close() error {
	if f.handle == nil {
		return nil
	}
	err := f.handle.Close()
	f.handle = nil
	return err
}

// read reads the file. Damaged content is not an error; only I/O is.
func (f *denylistFile) read() (readResult, error) {
	r := readResult{entries: newFileEntries(0)}
	handle, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("read the restrictions: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(handle, maxFile+1))
	if err := errors.Join(err, handle.Close()); err != nil {
		return r, fmt.Errorf("read the restrictions: %w", err)
	}
	r.exists = true
	r.parse(text)
	return r, nil
}

// changedLines returns the lines for a change. sync reports whether they contain decisions of a user.
func (f *denylistFile) changedLines(c ChangeSet) (lines []fileLine, sync bool) {
	if c.Server == "" {
		return nil, false
	}
	now := func(s decisionKey) fileEntry { return f.entries.get(s) }
	if c.Forget {
		lines, sync = append(lines, fileLine{decisionKey: decisionKey{Server: c.Server}, Forget: true}), true
		now = func(decisionKey) fileEntry { return fileEntry{} }
	}
	launch := decisionKey{c.Server, kindLaunch, ""}
	after := now(launch)
	if c.RevokeLaunch {
		after = fileEntry{}
	}
	if c.Launch != nil {
		after = fileEntry{Was: sha256Digest(c.Launch.Fingerprint)}
	}
	if after != now(launch) {
		lines, sync = append(lines, fileLine{decisionKey: launch, fileEntry: after}), true
	}
	for _, row := range c.Tools {
		s := newDecisionKey(c.Server, row)
		before, after := now(s), newFileEntry(row.DefinitionDecisions)
		if after == before {
			continue
		}
		lines = append(lines, fileLine{decisionKey: s, fileEntry: after})
		before.Was = after.Was
		sync = sync || row.Pin == nil || row.Pin.ByUser() || after != before
	}
	return lines, sync
}

// undoLinesFor returns the lines that restore the current entries of the same subjects.
func (f *denylistFile) undoLinesFor(lines []fileLine) []fileLine {
	var all []fileLine
	for _, l := range lines {
		if !l.Forget {
			all = append(all, fileLine{decisionKey: l.decisionKey, fileEntry: f.entries.get(l.decisionKey)})
			continue
		}
		for s, e := range f.entries.all() {
			if s.Server == l.Server {
				all = append(all, fileLine{decisionKey: s, fileEntry: e})
			}
		}
	}
	return all
}

func (f *denylistFile) applyLines(lines []fileLine) {
	for _, l := range lines {
		f.entries.applyLine(l)
	}
}

// appendLines appends lines and returns when they are in the file, or, with sync, on disk. The bytes of a failed
// write are removed at once or before the next write.
func (f *denylistFile) appendLines(lines []fileLine, sync bool) error {
	if len(lines) == 0 {
		return nil
	}
	if f.stale || f.isMoved() || f.isMostlyObsolete(len(lines)) {
		if err := f.rewrite(); err != nil {
			return err
		}
	}
	text, head, err := f.formatChained(f.head, lines)
	if err != nil {
		return err
	}
	if f.size+int64(len(text)) > maxFile {
		return fmt.Errorf("the restrictions file has reached its limit of %d bytes: %s", f.size, f.path)
	}
	if err := f.writeAndSync(text, head, sync); err != nil {
		f.stale = true
		return fmt.Errorf("write the restrictions: %w", err)
	}
	f.applyLines(lines)
	f.head, f.size = head, f.size+int64(len(text))
	return nil
}

// writeAndSync appends text. It counts only synced lines in the first line, because a file with fewer lines than
// counted is treated as damaged.
func (f *denylistFile) writeAndSync(text []byte, head chainLink, sync bool) error {
	if _, err := f.handle.WriteAt(text, f.size); err != nil {
		return errors.Join(err, f.handle.Truncate(f.size))
	}
	if !sync {
		return nil
	}
	if err := f.handle.Sync(); err != nil {
		return err
	}
	_, err := f.handle.WriteAt(formatFirstLine(f.seed, head), 0)
	return err
}

// formatChained formats lines that continue the chain after a link.
func (f *denylistFile) formatChained(after chainLink, lines []fileLine) (text []byte, head chainLink, err error) {
	head = after
	for _, l := range lines {
		data, err := json.Marshal(l)
		if err != nil {
			return nil, head, err
		}
		head = chainLink{head.seq + 1, chainHash(head.hash, data)}
		text = hex.AppendEncode(text, head.hash[:])
		text = append(append(append(text, ' '), data...), '\n')
	}
	return text, head, nil
}

// isMostlyObsolete reports whether most lines of the file are obsolete.
func (f *denylistFile) isMostlyObsolete(more int) bool {
	return f.head.seq+int64(more) > 2*int64(f.entries.len())+looseLines
}

// isMoved reports whether the file is no longer at its path.
func (f *denylistFile) isMoved() bool {
	there, err := ondisk.IsFileStillAtPath(f.path, f.handle)
	return f.handle == nil || !there && err == nil
}

// rewrite writes a new file with the current entries, syncs it, and renames it over the old one.
func (f *denylistFile) rewrite() error {
	f.stale = true
	if err := f.close(); err != nil {
		return fmt.Errorf("close the restrictions: %w", err)
	}
	_, _ = rand.Read(f.seed[:]) // never fails
	text, head, err := f.formatChained(chainLink{0, f.seed}, f.allLines())
	if err != nil {
		return err
	}
	next := f.path + ".new"
	err = ondisk.WriteNewFile(next, formatFirstLine(f.seed, head), text)
	if err == nil {
		err = os.Rename(next, f.path)
	}
	if err == nil {
		err = ondisk.SyncDir(filepath.Dir(f.path))
	}
	if err != nil {
		return fmt.Errorf("rewrite the restrictions: %w", err)
	}
	return f.openForAppend(head, int64(firstLen+len(text)))
}

// openForAppend opens the file for appending after size bytes, and truncates a partial line from a crash.
func (f *denylistFile) openForAppend(head chainLink, size int64) (err error) {
	if f.handle, err = os.OpenFile(f.path, os.O_RDWR, 0); err != nil {
		return fmt.Errorf("open the restrictions: %w", err)
	}
	if err := f.handle.Truncate(size); err != nil {
		return fmt.Errorf("cut off the end of the restrictions: %w", err)
	}
	f.head, f.size, f.stale = head, size, false
	return nil
}

// allLines returns all entries as lines, in a stable order.
func (f *denylistFile) allLines() []fileLine {
	lines := make([]fileLine, 0, f.entries.len()+1)
	for s, e := range f.entries.all() {
		lines = append(lines, fileLine{decisionKey: s, fileEntry: e})
	}
	slices.SortFunc(lines, func(a, b fileLine) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	if f.restrictionsLost {
		lines = slices.Insert(lines, 0, fileLine{RestrictionsLost: true})
	}
	return lines
}

// replaceEntries replaces the entries of the file.
func (f *denylistFile) replaceEntries(entries fileEntries, gaps bool) error {
	same := f.restrictionsLost == gaps && f.entries.isEqual(entries)
	f.entries, f.restrictionsLost = entries, gaps
	if same && !f.stale && !f.isMoved() {
		return nil
	}
	return f.rewrite()
}

// continueAfterRead sets the entries after the file was read. It continues an undamaged file, and keeps a damaged one
// as a backup.
func (f *denylistFile) continueAfterRead(entries fileEntries, gaps bool, r readResult) error {
	f.entries, f.restrictionsLost, f.stale = entries, gaps, true
	if r.damage != "" {
		aside := fmt.Sprintf("%s.damaged-%s", f.path, time.Now().UTC().Format("20060102T150405.000"))
		if err := os.Rename(f.path, aside); err != nil {
			return fmt.Errorf("keep the damaged restrictions: %w", err)
		}
		return f.rewrite()
	}
	if !r.exists || r.restrictionsLost != gaps || !r.entries.isEqual(entries) {
		return f.rewrite()
	}
	if err := f.close(); err != nil {
		return fmt.Errorf("close the restrictions: %w", err)
	}
	f.seed = r.seed
	return f.openForAppend(r.head, r.size)
}

// restoreEntries restores the entries from before a change that failed.
func (f *denylistFile) restoreEntries(before []fileLine, sync bool) error {
	err := f.appendLines(before, sync)
	if err != nil {
		f.stale = true
		f.applyLines(before)
	}
	return err
}
