package ops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/ondisk"
	"mcpproxy/internal/problem"
)

// ConfigHistoryQuery selects a page of the configuration history.
type ConfigHistoryQuery struct {
	Limit  int `query:"limit" min:"1" max:"100" default:"50" doc:"The maximum number of versions."`
	Offset int `query:"offset" min:"0" max:"1000" doc:"The number of versions to skip."`
}

// VersionList is a page of the history, newest first.
type VersionList struct {
	Versions []Version `json:"versions"`
	Total    int       `json:"total"`
	Limit    int       `json:"limit"`
	Offset   int       `json:"offset"`
}

// ConfigVersionRef identifies a version.
type ConfigVersionRef struct {
	ID string `path:"id" doc:"The id of the version."`
}

// VersionText is the text of a version.
type VersionText struct {
	ID   string `json:"id"`
	Text string `json:"text" doc:"The text of the version, with placeholders as in GET /config. A placeholder can be saved again if its secret is still in the file."`
}

// ListVersions lists the versions of the file that were applied.
func (s *ConfigOperations) ListVersions(_ context.Context, _ Caller, in ConfigHistoryQuery) (VersionList, error) {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	all := s.history.listVersions()
	from := min(in.Offset, len(all))
	return VersionList{append([]Version{}, all[from:min(from+in.Limit, len(all))]...), len(all), in.Limit, in.Offset}, nil
}

// VersionText returns the text of a version.
func (s *ConfigOperations) VersionText(_ context.Context, _ Caller, in ConfigVersionRef) (VersionText, error) {
	s.history.mu.Lock()
	defer s.history.mu.Unlock()
	err := error(fs.ErrNotExist)
	var text []byte
	if idPattern.MatchString(in.ID) {
		_, text, err = s.history.readVersion(in.ID, true)
	}
	if err != nil {
		return VersionText{}, problem.Newf(problem.NotFound, "The version '%s' of the configuration does not exist.", problem.ClipName(in.ID)).
			WithHint("GET /config/history lists them.")
	}
	return VersionText{in.ID, s.masker.maskText(text, nil).text}, nil
}

// Limits of the history.
const (
	maxVersions      = 50
	maxHistory       = 5 << 20 // bytes on disk
	maxVersionHeader = 64 << 10
	maxKeys          = 100
)

// Version is an earlier text of the configuration file.
type Version struct {
	ID    string    `json:"id"`
	At    time.Time `json:"at" doc:"The time at which the version was applied."`
	By    string    `json:"by" doc:"The actor that applied the version; file if the file was edited directly."`
	Keys  []string  `json:"keys" doc:"The keys that the version changed, at most 100."`
	Bytes int       `json:"bytes"`
	ETag  string    `json:"etag" doc:"The etag of the version, as in GET /config."`
}

// versionStore stores each text in one file of a folder. The first line of a file is JSON metadata. Errors are only
// logged, because nothing depends on the history.
type versionStore struct {
	dir    string
	logger *slog.Logger

	mu   sync.Mutex // guards the folder and the fields below
	last string     // the newest ID
	err  error      // the reason why the last text was not stored
}

const (
	idForm    = "20060102T150405.000000000Z"
	extension = ".jsonc"
	// tempName is the name of the file while it is written. The name is fixed, so that a file left by a crash is
	// overwritten.
	tempName = ".next"
)

var idPattern = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}\.[0-9]{9}Z$`)

func newVersionStore(dir string, logger *slog.Logger) *versionStore {
	return &versionStore{dir: dir, logger: logger}
}

// addVersion stores a text, unless its data is nil.
func (h *versionStore) addVersion(f config.AppliedText) {
	if f.Data == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err = h.writeVersion(f); h.err != nil {
		h.logger.Warn("the text of the configuration could not be stored", "dir", h.dir, "error", h.err)
	}
}

// writeVersion stores a text. The caller holds mu.
func (h *versionStore) writeVersion(f config.AppliedText) error {
	if err := h.ensureFolder(); err != nil {
		return err
	}
	v := Version{At: f.Since.UTC(), By: f.By, Keys: f.Keys[:min(len(f.Keys), maxKeys)], Bytes: len(f.Data), ETag: f.ETag()}
	if all := h.listVersions(); len(all) > 0 {
		h.last = max(h.last, all[0].ID)
	}
	v.ID = v.At.Format(idForm)
	if before, err := time.Parse(idForm, h.last); err == nil && v.ID <= h.last {
		v.ID = before.Add(time.Nanosecond).Format(idForm) // the clock was set back
	}
	head, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(head) >= maxVersionHeader {
		v.Keys = []string{}
		head, _ = json.Marshal(v) // the same value was encoded above
	}
	temporary := filepath.Join(h.dir, tempName)
	if err := ondisk.WriteNewFile(temporary, head, []byte("\n"), f.Data); err != nil {
		_ = os.Remove(temporary) // a full disk leaves a partial file
		return err
	}
	if err := os.Rename(temporary, h.filePath(v.ID)); err != nil {
		return err
	}
	_ = ondisk.SyncDir(h.dir) // not supported by all file systems; the file itself is synced
	h.last = v.ID
	h.pruneOldest()
	return nil
}

// ensureFolder creates the folder and makes it accessible only to its owner.
func (h *versionStore) ensureFolder() error {
	if err := os.MkdirAll(h.dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(h.dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", h.dir)
	case info.Mode().Perm()&0o077 != 0:
		return os.Chmod(h.dir, 0o700)
	}
	return nil
}

func (h *versionStore) filePath(id string) string { return filepath.Join(h.dir, id+extension) }

// pruneOldest removes the oldest texts until the limits are met. It always keeps the newest.
func (h *versionStore) pruneOldest() {
	size := int64(0)
	for i, id := range h.versionIDs() {
		info, err := os.Lstat(h.filePath(id))
		if err != nil {
			continue
		}
		size += info.Size()
		if i > 0 && (i >= maxVersions || size > maxHistory) {
			_ = os.Remove(h.filePath(id)) // retried when the next text is added
		}
	}
}

// versionIDs returns the stored IDs, newest first.
func (h *versionStore) versionIDs() (ids []string) {
	entries, _ := os.ReadDir(h.dir) // an unreadable folder counts as empty
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), extension); ok && idPattern.MatchString(id) && e.Type().IsRegular() {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids[:min(len(ids), 2*maxVersions)]
}

// listVersions returns all readable versions, newest first.
func (h *versionStore) listVersions() (all []Version) {
	for _, id := range h.versionIDs() {
		if v, _, err := h.readVersion(id, false); err == nil {
			all = append(all, v)
		}
	}
	return all
}

// readVersion reads one version, with its text if whole is set.
func (h *versionStore) readVersion(id string, whole bool) (v Version, text []byte, err error) {
	if info, err := os.Lstat(h.filePath(id)); err != nil || !info.Mode().IsRegular() || info.Size() > maxHistory+maxVersionHeader {
		return v, nil, errors.Join(err, fs.ErrNotExist)
	}
	data, err := os.ReadFile(h.filePath(id))
	if err != nil {
		return v, nil, err
	}
	head, text, _ := bytes.Cut(data, []byte{'\n'})
	if err := json.Unmarshal(head, &v); err != nil || v.ID != id {
		return v, nil, fmt.Errorf("%s is not a version of the configuration: %w", h.filePath(id), errors.Join(err, fs.ErrNotExist))
	}
	if v.Keys == nil {
		v.Keys = []string{}
	}
	if whole && config.ETag(text) != v.ETag {
		return v, nil, fmt.Errorf("%s was changed: %w", h.filePath(id), fs.ErrNotExist)
	}
	return v, text, nil
}

// newestVersion returns the newest version with its text.
func (h *versionStore) newestVersion() (Version, []byte, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range h.versionIDs() {
		if v, text, err := h.readVersion(id, true); err == nil {
			return v, text, true
		}
	}
	return Version{}, nil, false
}

// lastWriteError returns the error of the last attempt to store a text, or nil if it succeeded.
func (h *versionStore) lastWriteError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}
