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

// looseLines is how many obsolete lines a file may have, in addition to as many as current ones, before it
// is rewritten.
const looseLines = 1000

// file is the denylist file and its content. It is not safe for concurrent use.
type file struct {
	path    string
	handle  *os.File // nil until it is open
	entries entries
	gaps    bool   // an earlier file was partially lost
	seed    digest // start of the chain
	head    link   // last line
	size    int64
	// stale reports whether the file may differ from entries: it is rewritten before the next write.
	stale bool
}

func newFile(path string) *file {
	return &file{path: path, entries: newEntries(0), stale: true}
}

func (f *file) close() error {
	if f.handle == nil {
		return nil
	}
	err := f.handle.Close()
	f.handle = nil
	return err
}

// loadOnce reads the file. Damaged content is no error; only I/O is.
func (f *file) read() (reading, error) {
	r := reading{entries: newEntries(0)}
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

// lines returns the lines for a change; sync reports whether a user decided them.
func (f *file) lines(c Change) (lines []line, sync bool) {
	if c.Server == "" {
		return nil, false
	}
	now := func(s subject) entry { return f.entries.of(s) }
	if c.Forget {
		lines, sync = append(lines, line{subject: subject{Server: c.Server}, Forget: true}), true
		now = func(subject) entry { return entry{} }
	}
	launch := subject{c.Server, kindLaunch, ""}
	after := now(launch)
	if c.Unpin {
		after = entry{}
	}
	if c.Launch != nil {
		after = entry{Was: digest(c.Launch.Fingerprint)}
	}
	if after != now(launch) {
		lines, sync = append(lines, line{subject: launch, entry: after}), true
	}
	for _, row := range c.Tools {
		s := subjectOf(c.Server, row)
		before, after := now(s), entryOf(row.Entry)
		if after == before {
			continue
		}
		lines = append(lines, line{subject: s, entry: after})
		before.Was = after.Was
		sync = sync || row.Pin == nil || row.Pin.ByUser() || after != before
	}
	return lines, sync
}

// now returns the lines that restore the current entries of the same subjects.
func (f *file) now(lines []line) []line {
	var all []line
	for _, l := range lines {
		if !l.Forget {
			all = append(all, line{subject: l.subject, entry: f.entries.of(l.subject)})
			continue
		}
		for s, e := range f.entries.all() {
			if s.Server == l.Server {
				all = append(all, line{subject: s, entry: e})
			}
		}
	}
	return all
}

func (f *file) apply(lines []line) {
	for _, l := range lines {
		f.entries.apply(l)
	}
}

// write appends lines and returns when they are in the file; with sync, on disk. A failed write leaves
// nothing, or is removed before the next one.
func (f *file) write(lines []line, sync bool) error {
	if len(lines) == 0 {
		return nil
	}
	if f.stale || f.moved() || f.loose(len(lines)) {
		if err := f.rewrite(); err != nil {
			return err
		}
	}
	text, head, err := f.chain(f.head, lines)
	if err != nil {
		return err
	}
	if f.size+int64(len(text)) > maxFile {
		return fmt.Errorf("the file of restrictions has %d bytes, which is the most: %s", f.size, f.path)
	}
	if err := f.put(text, head, sync); err != nil {
		f.stale = true
		return fmt.Errorf("write the restrictions: %w", err)
	}
	f.apply(lines)
	f.head, f.size = head, f.size+int64(len(text))
	return nil
}

// put appends text. Only synced lines are counted in the first line, because fewer lines than counted mean
// damage.
func (f *file) put(text []byte, head link, sync bool) error {
	if _, err := f.handle.WriteAt(text, f.size); err != nil {
		return errors.Join(err, f.handle.Truncate(f.size))
	}
	if !sync {
		return nil
	}
	if err := f.handle.Sync(); err != nil {
		return err
	}
	_, err := f.handle.WriteAt(firstLine(f.seed, head), 0)
	return err
}

// chain formats lines that continue the chain after a link.
func (f *file) chain(after link, lines []line) (text []byte, head link, err error) {
	head = after
	for _, l := range lines {
		data, err := json.Marshal(l)
		if err != nil {
			return nil, head, err
		}
		head = link{head.seq + 1, chainHash(head.hash, data)}
		text = hex.AppendEncode(text, head.hash[:])
		text = append(append(append(text, ' '), data...), '\n')
	}
	return text, head, nil
}

// loose reports whether most lines of the file are obsolete.
func (f *file) loose(more int) bool {
	return f.head.seq+int64(more) > 2*int64(f.entries.len())+looseLines
}

// moved reports whether the file is no longer at its path.
func (f *file) moved() bool {
	there, err := ondisk.PathNamesFile(f.path, f.handle)
	return f.handle == nil || !there && err == nil
}

// rewrite writes a new file with the current entries, syncs it, and renames it over the old one.
func (f *file) rewrite() error {
	f.stale = true
	if err := f.close(); err != nil {
		return fmt.Errorf("close the restrictions: %w", err)
	}
	_, _ = rand.Read(f.seed[:]) // never fails
	text, head, err := f.chain(link{0, f.seed}, f.all())
	if err != nil {
		return err
	}
	next := f.path + ".new"
	err = ondisk.WriteNewFile(next, firstLine(f.seed, head), text)
	if err == nil {
		err = os.Rename(next, f.path)
	}
	if err == nil {
		err = ondisk.SyncDir(filepath.Dir(f.path))
	}
	if err != nil {
		return fmt.Errorf("write the restrictions anew: %w", err)
	}
	return f.open(head, int64(firstLen+len(text)))
}

// open opens the file for appending after size bytes, and truncates a partial line from a crash.
func (f *file) open(head link, size int64) (err error) {
	if f.handle, err = os.OpenFile(f.path, os.O_RDWR, 0); err != nil {
		return fmt.Errorf("open the restrictions: %w", err)
	}
	if err := f.handle.Truncate(size); err != nil {
		return fmt.Errorf("cut off the end of the restrictions: %w", err)
	}
	f.head, f.size, f.stale = head, size, false
	return nil
}

// all returns all entries as lines, in a stable order.
func (f *file) all() []line {
	lines := make([]line, 0, f.entries.len()+1)
	for s, e := range f.entries.all() {
		lines = append(lines, line{subject: s, entry: e})
	}
	slices.SortFunc(lines, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
	if f.gaps {
		lines = slices.Insert(lines, 0, line{Gaps: true})
	}
	return lines
}

// become replaces the entries of the file.
func (f *file) become(entries entries, gaps bool) error {
	same := f.gaps == gaps && f.entries.equal(entries)
	f.entries, f.gaps = entries, gaps
	if same && !f.stale && !f.moved() {
		return nil
	}
	return f.rewrite()
}

// adopt is become after reading the file: an undamaged file is continued, a damaged one kept as a backup.
func (f *file) adopt(entries entries, gaps bool, r reading) error {
	f.entries, f.gaps, f.stale = entries, gaps, true
	if r.damage != "" {
		aside := fmt.Sprintf("%s.damaged-%s", f.path, time.Now().UTC().Format("20060102T150405.000"))
		if err := os.Rename(f.path, aside); err != nil {
			return fmt.Errorf("keep the damaged restrictions: %w", err)
		}
		return f.rewrite()
	}
	if !r.exists || r.gaps != gaps || !r.entries.equal(entries) {
		return f.rewrite()
	}
	if err := f.close(); err != nil {
		return fmt.Errorf("close the restrictions: %w", err)
	}
	f.seed = r.seed
	return f.open(r.head, r.size)
}

// undo restores the entries from before a change that failed.
func (f *file) undo(before []line, sync bool) error {
	err := f.write(before, sync)
	if err != nil {
		f.stale = true
		f.apply(before)
	}
	return err
}
