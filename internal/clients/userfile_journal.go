package clients

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/ondisk"
	"mcpproxy/internal/problem"
)

// Change is a change of a file.
type Change struct {
	ID           string      `json:"id"`
	Path         string      `json:"path"`
	Target       string      `json:"target,omitempty"` // target of a link
	What         string      `json:"what"`
	Group        string      `json:"run,omitempty"`     // group of changes: see WithGroup
	Backup       string      `json:"backup,omitempty"`  // file with the previous text; none for a new file
	Written      string      `json:"written,omitempty"` // file with the written text; most changes have none
	At           time.Time   `json:"at"`
	Created      bool        `json:"created,omitempty"`
	Removed      bool        `json:"removed,omitempty"` // the file was deleted
	Mode         fs.FileMode `json:"mode"`
	After        string      `json:"after"` // SHA-256 of the written text, in hex
	Undone       *time.Time  `json:"undone,omitempty"`
	PartlyUndone bool        `json:"partly,omitempty"`    // undone, except for later changes by others
	Withdrawn    bool        `json:"withdrawn,omitempty"` // undone by UndoEvenWithoutEntries
	Roots        []string    `json:"roots,omitempty"`
	Entries      [][]string  `json:"entries,omitempty"` // the changed entries, for a RestoreFunc
}

// RestoreFunc returns the text of a file with the entries of a change restored, if the file has changed since.
type RestoreFunc func(what string, entries [][]string, now, before []byte) ([]byte, error)

// maxChanges is the maximum number of stored changes. The oldest ones are deleted, with their backups.
const maxChanges = 200

// Journal stores changes in a private directory: one file per change, and one with the previous text.
type Journal struct{ dir, group string }

// OpenJournal opens the journal in a directory. The directory is created when it is needed.
func OpenJournal(dir string) (*Journal, error) {
	absolute, err := filepath.Abs(dir)
	return &Journal{dir: absolute}, err
}

// WithGroup returns the journal for a group of changes that are undone together.
func (j *Journal) WithGroup(run string) *Journal { return &Journal{j.dir, run} }

// WriteFile replaces the text of a file. The error is a *problem.Problem: CONFLICT if the file has changed since it was
// read, or is not writable.
func (j *Journal) WriteFile(f UserFile, text []byte, what string, entries ...[]string) (Change, error) {
	return j.writeFile(f, text, what, entries, false)
}

// WriteFileKeepingText is like WriteFile, but also stores the written text, so that the change can be removed even if
// the file changes later.
func (j *Journal) WriteFileKeepingText(f UserFile, text []byte, what string, entries ...[]string) (Change, error) {
	return j.writeFile(f, text, what, entries, true)
}

// WrittenText returns the text that the change wrote, if it was stored.
func (c Change) WrittenText() ([]byte, bool) {
	if c.Written == "" {
		return nil, false
	}
	text, err := os.ReadFile(c.Written)
	return text, err == nil
}

func (j *Journal) writeFile(f UserFile, text []byte, what string, entries [][]string, keep bool) (Change, error) {
	if f.Exists && !ownerCanWrite(f.Mode) {
		return Change{}, newRefusedError(f.Path, "is not writable", "To allow the change, run chmod u+w.")
	}
	unlock, err := j.lockJournal()
	if err != nil {
		return Change{}, err
	}
	defer unlock()
	c, err := j.beginChange(f, what, hexSHA256(text), entries)
	if err != nil {
		return Change{}, err
	}
	if keep {
		c.Written = filepath.Join(j.dir, c.ID+"-"+filepath.Base(f.Path)+".new")
		if err := errors.Join(ondisk.WriteNewFile(c.Written, text), j.saveChange(c)); err != nil {
			return Change{}, errors.Join(newWriteError(c.Written, err), j.removeChange(c))
		}
	}
	if err := replaceFile(f, text); err != nil {
		return Change{}, errors.Join(err, j.removeChange(c))
	}
	written, err := ReadUserFile(f.Path, f.roots...)
	if err != nil {
		return c, err
	}
	if hexSHA256(written.Text) != c.After {
		return c, newRefusedError(f.Path, "was changed by another program during the write", "Check the file. The previous text is in "+c.Backup+".")
	}
	return c, j.pruneChanges()
}

// beginChange stores a change and the previous text before the write.
func (j *Journal) beginChange(f UserFile, what, after string, entries [][]string) (Change, error) {
	now := time.Now().UTC()
	c := Change{
		ID: now.Format("20060102T150405.000000000"), Path: f.Path, What: what, Group: j.group, At: now, Created: !f.Exists, Mode: f.Mode, After: after, Roots: f.roots, Entries: entries,
	}
	if f.Target != f.Path {
		c.Target = f.Target
	}
	if f.Exists {
		c.Backup = filepath.Join(j.dir, c.ID+"-"+filepath.Base(f.Path)+".bak")
		if err := ondisk.WriteNewFile(c.Backup, f.Text); err != nil {
			return Change{}, newWriteError(c.Backup, err)
		}
	}
	return c, j.saveChange(c)
}

// RemoveFile deletes a file that was read. Its errors are those of WriteFile.
func (j *Journal) RemoveFile(f UserFile, what string, entries ...[]string) (Change, error) {
	unlock, err := j.lockJournal()
	if err != nil {
		return Change{}, err
	}
	defer unlock()
	if same, err := f.isUnchanged(); err != nil || !same {
		return Change{}, errors.Join(err, newRefusedError(f.Path, "was changed in the meantime", "Try again."))
	}
	c, err := j.beginChange(f, what, hexSHA256(nil), entries)
	if err != nil {
		return Change{}, err
	}
	c.Removed = true
	if err := os.Remove(f.Target); err != nil {
		return Change{}, errors.Join(newWriteError(f.Path, err), j.removeChange(c))
	}
	return c, errors.Join(j.saveChange(c), j.pruneChanges())
}

// Changes returns the changes, newest first.
func (j *Journal) Changes() ([]Change, error) {
	entries, err := os.ReadDir(j.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, newWriteError(j.dir, err)
	}
	all := []Change{}
	for _, e := range slices.Backward(entries) {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(j.dir, e.Name()))
		var c Change
		if err == nil {
			err = json.Unmarshal(text, &c)
		}
		if err != nil {
			return nil, newWriteError(filepath.Join(j.dir, e.Name()), err)
		}
		all = append(all, c)
	}
	return all, nil
}

// Undo restores a file byte for byte. If the file has changed since, back restores the entries of the change. back may
// be nil. The error is a *problem.Problem: NOT_FOUND for an unknown change, CONFLICT for a change that is already
// undone or for a file that has changed since.
func (j *Journal) Undo(id string, back RestoreFunc) (Change, error) {
	return j.undoChange(id, back, false)
}

// UndoEvenWithoutEntries is like Undo, but also calls back for a change without entries.
func (j *Journal) UndoEvenWithoutEntries(id string, back RestoreFunc) (Change, error) {
	return j.undoChange(id, back, true)
}

func (j *Journal) undoChange(id string, back RestoreFunc, always bool) (Change, error) {
	unlock, err := j.lockJournal()
	if err != nil {
		return Change{}, err
	}
	defer unlock()
	all, err := j.Changes()
	if err != nil {
		return Change{}, err
	}
	i := slices.IndexFunc(all, func(c Change) bool { return c.ID == id })
	if i < 0 {
		return Change{}, problem.New(problem.NotFound, "Unknown change "+id+".", "It may be too old: only the last 200 are kept.")
	}
	c := all[i]
	if c.Undone != nil {
		return c, problem.New(problem.Conflict, "The change of "+c.Path+" is undone already.", "No action is needed.")
	}
	if c.PartlyUndone, err = c.restorePrevious(back, always); err != nil {
		return c, err
	}
	now := time.Now().UTC()
	c.Undone, c.Withdrawn = &now, always
	return c, j.saveChange(c)
}

// restorePrevious restores the previous text. In a file that has changed since, it restores only the entries and
// returns partly true.
func (c Change) restorePrevious(back RestoreFunc, always bool) (partly bool, err error) {
	f, err := ReadUserFile(c.Path, c.Roots...)
	if err != nil {
		return false, err
	}
	var before []byte
	if c.Backup != "" {
		if before, err = os.ReadFile(c.Backup); err != nil {
			return false, newWriteError(c.Backup, err)
		}
	}
	if c.Removed && !f.Exists {
		f.Mode = c.Mode
		return false, replaceFile(f, before)
	}
	switch there := f.Exists && (c.Target == "" || f.Target == c.Target); {
	case there && hexSHA256(f.Text) == c.After && c.Created:
		if err := os.Remove(f.Target); err != nil {
			return false, newWriteError(c.Path, err)
		}
		return false, nil
	case there && hexSHA256(f.Text) == c.After:
		return false, replaceFile(f, before)
	case there && back != nil && (always || len(c.Entries) > 0):
		text, err := back(c.What, c.Entries, f.Text, before)
		if err != nil {
			return false, err
		}
		if c.Created && always && IsEmptyDocument(text) {
			return false, os.Remove(f.Target)
		}
		return true, replaceFile(f, text)
	}
	hint := "Remove the entry manually."
	if c.Backup != "" {
		hint = "The previous text is in " + c.Backup + ": copy what you need from it."
	}
	return false, newRefusedError(c.Path, "was changed since: an undo would lose the later changes", hint)
}

// IsEmptyDocument reports whether a text is empty or an empty object.
func IsEmptyDocument(text []byte) bool {
	said := strings.Join(strings.Fields(string(text)), "")
	return said == "" || said == "{}"
}

// replaceFile replaces a file atomically.
func replaceFile(f UserFile, text []byte) error {
	dir := filepath.Dir(f.Target)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return newWriteError(f.Path, err)
	}
	next := filepath.Join(dir, "."+filepath.Base(f.Target)+".mcpproxy")
	defer os.Remove(next)
	if err := ondisk.WriteNewFile(next, text); err != nil {
		return newWriteError(f.Path, err)
	}
	if err := os.Chmod(next, f.Mode); err != nil {
		return newWriteError(f.Path, err)
	}
	// This check is as late as possible, so that a concurrent write is not lost.
	switch same, err := f.isUnchanged(); {
	case err != nil:
		return err
	case !same:
		return newRefusedError(f.Path, "was changed in the meantime", "Try again; close the client first if it keeps writing.")
	}
	if err := os.Rename(next, f.Target); err != nil {
		return newWriteError(f.Path, err)
	}
	_ = ondisk.SyncDir(dir) // some file systems do not support it; the file itself is synced
	return nil
}

// LockRun prevents concurrent groups of changes until release is called. The error is a *problem.Problem: CONFLICT if
// another group is running.
func (j *Journal) LockRun() (release func(), err error) { return j.lockFile("run.lock") }

// lockJournal creates the journal's directory, and locks the journal against other processes.
func (j *Journal) lockJournal() (unlock func(), err error) { return j.lockFile("lock") }

func (j *Journal) lockFile(name string) (release func(), err error) {
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return nil, newWriteError(j.dir, err)
	}
	held, err := ondisk.LockFile(filepath.Join(j.dir, name))
	if errors.Is(err, ondisk.ErrLocked) {
		return nil, problem.New(problem.Conflict, "Another MCPProxy is changing client files at the moment.", "Try again.")
	}
	if err != nil {
		return nil, newWriteError(j.dir, err)
	}
	return func() { _ = held.Close() }, nil
}

func (j *Journal) saveChange(c Change) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(j.dir, c.ID+".json")
	if err := ondisk.ReplaceFile(path, append(text, '\n')); err != nil {
		return newWriteError(path, err)
	}
	return nil
}

func (j *Journal) removeChange(c Change) error {
	err := os.Remove(filepath.Join(j.dir, c.ID+".json"))
	if c.Backup != "" {
		err = errors.Join(err, os.Remove(c.Backup))
	}
	if c.Written != "" {
		err = errors.Join(err, os.Remove(c.Written))
	}
	return err
}

func (j *Journal) pruneChanges() error {
	all, err := j.Changes()
	if err != nil {
		return err
	}
	for _, old := range all[min(len(all), maxChanges):] {
		err = errors.Join(err, j.removeChange(old))
	}
	return err
}

func hexSHA256(text []byte) string {
	s := sha256.Sum256(text)
	return hex.EncodeToString(s[:])
}

func newWriteError(path string, err error) error {
	return problem.New(problem.Conflict, fmt.Sprintf("%s cannot be written: %v.", path, err), "Check the permissions of its directory, and the space on the disk.").Because(err)
}
