package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeRegistry answers as the documented API does, page by page.
type fakeRegistry struct {
	*httptest.Server
	mu       sync.Mutex // guards the following fields
	entries  []json.RawMessage
	pageSize int
	asked    []string // URLs of requests
	answer   http.HandlerFunc
}

func newFakeRegistry(t *testing.T, entries ...json.RawMessage) *fakeRegistry {
	f := &fakeRegistry{entries: entries, pageSize: pageSize}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

func (f *fakeRegistry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, q.URL.RequestURI())
	if f.answer != nil {
		f.answer(w, q)
		return
	}
	if name, ok := strings.CutPrefix(q.URL.Path, "/v0.1/servers/"); ok {
		name, version, _ := strings.Cut(name, "/versions/")
		for _, raw := range f.entries {
			if e, err := parseEntry(raw); err == nil && e.Name == name && (version == "latest" || version == e.Version) {
				_, _ = w.Write(raw)
				return
			}
		}
		http.NotFound(w, q)
		return
	}
	var found []json.RawMessage
	for _, raw := range f.entries {
		since, _ := time.Parse(time.RFC3339, q.FormValue("updated_since"))
		if e, err := parseEntry(raw); err != nil || strings.Contains(e.Name, q.FormValue("search")) && e.Updated.After(since) {
			found = append(found, raw)
		}
	}
	start, next := 0, ""
	_, _ = fmt.Sscan(q.FormValue("cursor"), &start)
	if found = found[start:]; len(found) > f.pageSize {
		found, next = found[:f.pageSize], fmt.Sprint(start+f.pageSize)
	}
	_ = json.NewEncoder(w).Encode(object{"servers": found, "metadata": object{"nextCursor": next, "count": len(found)}})
}

func (f *fakeRegistry) requests() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// entry returns an entry that was updated at a time.
func entry(name, version, status string, updated time.Time) json.RawMessage {
	raw, err := json.Marshal(object{"server": object{"name": name, "version": version, "description": "Look at " + name}, "_meta": object{"io.modelcontextprotocol.registry/official": object{"status": status, "updatedAt": updated}}})
	if err != nil {
		panic(err)
	}
	return raw
}

func names(a Answer) string {
	var all []string
	for _, e := range a.Entries {
		all = append(all, e.Name+"@"+e.Version)
	}
	return strings.Join(all, " ")
}

// TestSearch follows pages, uses a stored answer while it is fresh, then asks only for what has changed, and works offline.
func TestSearch(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	old := now.Add(-time.Hour)
	f := newFakeRegistry(t, entry("a/notes-1", "1", "active", old), entry("a/notes-2", "1", "active", old), entry("a/notes-3", "1", "active", old), json.RawMessage(`{"server":{"name":7}}`))
	f.pageSize = 2
	c := Client{URL: f.URL, Dir: t.TempDir(), Now: func() time.Time { return now }}
	look := func(query, want string) Answer {
		t.Helper()
		a, err := c.Search(t.Context(), query)
		if err != nil || names(a) != want {
			t.Fatalf("%s, %v; want %s", names(a), err, want)
		}
		return a
	}
	if a := look("notes", "a/notes-1@1 a/notes-2@1 a/notes-3@1"); a.Unreadable != 1 || a.More || a.Offline != nil || len(f.requests()) != 2 {
		t.Errorf("%+v after %q", a, f.requests())
	}
	now = now.Add(time.Minute)
	if look("notes", "a/notes-1@1 a/notes-2@1 a/notes-3@1"); len(f.requests()) != 2 {
		t.Errorf("a fresh answer is not used: %q", f.requests())
	}
	now = now.Add(time.Hour)
	f.entries = append(f.entries[:0:0], entry("a/notes-1", "2", "active", now), entry("a/notes-2", "1", "deleted", now), entry("a/notes-3", "1", "active", old))
	look("notes", "a/notes-1@2 a/notes-3@1")
	if last := f.requests()[len(f.requests())-1]; !strings.Contains(last, "updated_since=2026-03-01T11%3A50%3A00Z") || !strings.Contains(last, "version=latest") {
		t.Errorf("%s asks for more than what has changed", last)
	}
	f.Close()
	now = now.Add(time.Hour)
	if a := look("notes", "a/notes-1@2 a/notes-3@1"); a.Offline == nil || !a.FetchedAt.Equal(now.Add(-time.Hour)) {
		t.Errorf("%+v", a)
	}
	if a := look("notes-3", "a/notes-3@1"); a.Offline == nil { // another query finds what is stored
		t.Errorf("%+v", a)
	}
	if a, err := c.Get(t.Context(), "a/notes-1", ""); err != nil || names(a) != "a/notes-1@2" || a.Offline == nil {
		t.Errorf("%+v, %v", a, err)
	}
	if _, err := c.Search(t.Context(), "nothing"); err == nil {
		t.Error("a search without any stored entry succeeds offline")
	}
}

// TestGet asks for one version, and refuses an answer about another server.
func TestGet(t *testing.T) {
	f := newFakeRegistry(t, entry("a/notes", "1", "deprecated", time.Time{}), entry("a/notes", "2", "active", time.Time{}))
	c := Client{URL: f.URL, Dir: t.TempDir(), Now: time.Now}
	if a, err := c.Get(t.Context(), "a/notes", "2"); err != nil || names(a) != "a/notes@2" {
		t.Errorf("%+v, %v", a, err)
	}
	if f.requests()[0] != "/v0.1/servers/a%2Fnotes/versions/2?include_deleted=true" {
		t.Error(f.requests())
	}
	if _, err := c.Get(t.Context(), "a/other", ""); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	for _, name := range []string{"../..", "a/..", "notes", "a/b/c", "a/b?x", "a/ b", ""} {
		if _, err := c.Get(t.Context(), name, ""); err == nil || len(f.requests()) != 2 {
			t.Errorf("%q: %v, %q", name, err, f.requests())
		}
	}
	f.answer = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(entry("a/evil", "1", "active", time.Time{}))
	}
	if _, err := c.Get(t.Context(), "a/new", ""); err == nil || !strings.Contains(err.Error(), "another server") {
		t.Error(err)
	}
}

// TestBadAnswers: each answer that exceeds a limit, redirects or is no JSON is an error, and nothing else is asked.
func TestBadAnswers(t *testing.T) {
	other := newFakeRegistry(t)
	for name, answer := range map[string]http.HandlerFunc{
		"larger than": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"servers":["` + strings.Repeat("x", maxPage) + `"]}`))
		},
		"more than": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"servers":[` + strings.Repeat("1,", pageSize) + `1]}`))
		},
		"not the JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`<html>`)) },
		"status 302":   func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, other.URL, http.StatusFound) },
		"status 500":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
	} {
		f := newFakeRegistry(t)
		f.answer = answer
		c := Client{URL: f.URL, Dir: t.TempDir(), Now: time.Now}
		if _, err := c.Search(t.Context(), "notes"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if asked := other.requests(); len(asked) > 0 {
		t.Errorf("a redirect was followed: %q", asked)
	}
	// A registry that always has a next page.
	f := newFakeRegistry(t)
	f.answer = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"servers":[{}],"metadata":{"nextCursor":"%d"}}`, len(f.asked))
	}
	c := Client{URL: f.URL, Dir: t.TempDir(), Now: time.Now}
	if a, err := c.Search(t.Context(), "notes"); err != nil || !a.More || len(f.requests()) != maxPages {
		t.Errorf("%+v, %v after %d requests", a, err, len(f.requests()))
	}
	// A registry whose name resolves to this machine was not meant by the user.
	c.URL = strings.Replace(f.URL, "127.0.0.1", "169.254.169.254", 1)
	if _, err := c.Search(t.Context(), "other"); err == nil || !strings.Contains(err.Error(), "not a public internet address") {
		t.Error(err)
	}
}

// TestStoredAnswersAreLimited: the oldest files are deleted.
func TestStoredAnswersAreLimited(t *testing.T) {
	c := Client{URL: "https://registry.example", Dir: t.TempDir(), Now: time.Now}
	for i := range maxCached + 5 {
		c.store(fmt.Sprint(i), "", Answer{FetchedAt: time.Now()})
	}
	if files, err := os.ReadDir(c.folder()); err != nil || len(files) != maxCached {
		t.Errorf("%d files, %v", len(files), err)
	}
}
