package registry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/mcp/dialpolicy"
	"mcpproxy/internal/ondisk"
	"mcpproxy/internal/problem"
)

// Limits of answers.
const (
	maxPage      = 4 << 20 // bytes of an answer
	pageSize     = 100     // entries
	maxPages     = 3       // of one search
	maxCursor    = 1000    // bytes
	maxQuery     = 100     // bytes
	askTimeout   = 20 * time.Second
	maxCached    = 200              // files for one registry
	freshFor     = 5 * time.Minute  // an answer is used again without asking
	overlap      = 10 * time.Minute // of updated_since with the time of the last answer, because clocks differ
	fullRenewal  = 24 * time.Hour   // after this, updated_since is not used
	maxFileBytes = 8 << 20
)

// ErrNotFound is the error about a server or version that the registry does not have.
var ErrNotFound = errors.New("the registry has no such server")

// Client asks one registry. It is safe for concurrent use.
type Client struct {
	URL string // without /v0.1
	Dir string // of the stored answers
	Now func() time.Time
}

// Answer is what a registry says.
type Answer struct {
	Entries    []*Entry
	FetchedAt  time.Time
	Offline    error // why the registry was not asked; the answer is a stored one
	More       bool  // there are more entries
	Unreadable int   // entries that were left out
}

// storedAnswer is an answer on disk.
type storedAnswer struct {
	Query     string            `json:"query"`
	FetchedAt time.Time         `json:"fetched_at"`
	More      bool              `json:"more,omitempty"`
	Entries   []json.RawMessage `json:"entries"`
}

// Search returns the latest versions of the servers whose names contain the query. If the registry cannot be reached, it
// returns the stored entries that match.
func (c Client) Search(ctx context.Context, query string) (Answer, error) {
	if query = strings.TrimSpace(query); len(query) < 3 || len(query) > maxQuery {
		return Answer{}, InputError(fmt.Sprintf("a search has 3 to %d characters", maxQuery))
	}
	stored, known := c.load("search " + query)
	if age := c.Now().Sub(stored.FetchedAt); known && age >= 0 && age < freshFor {
		return stored.answer(nil).withoutDeleted(), nil
	}
	ask := url.Values{"search": {query}, "version": {"latest"}, "limit": {fmt.Sprint(pageSize)}}
	renewed := storedAnswer{Query: query, FetchedAt: c.Now().UTC()}
	if known && !stored.More && c.Now().Sub(stored.FetchedAt) < fullRenewal {
		ask.Set("updated_since", stored.FetchedAt.Add(-overlap).Format(time.RFC3339))
		renewed.Entries = stored.Entries
	}
	for page := 1; ; page++ {
		var got struct {
			Servers  []json.RawMessage `json:"servers"`
			Metadata struct {
				NextCursor string `json:"nextCursor"`
			} `json:"metadata"`
		}
		if err := c.get(ctx, "/v0.1/servers?"+ask.Encode(), &got); err != nil {
			return c.offline(query, stored, known, err)
		}
		if len(got.Servers) > pageSize {
			return c.offline(query, stored, known, fmt.Errorf("the registry answers with more than %d servers on a page", pageSize))
		}
		renewed.Entries = append(renewed.Entries, got.Servers...)
		next := got.Metadata.NextCursor
		if next == "" || len(got.Servers) == 0 {
			break
		}
		if renewed.More = page == maxPages || len(next) > maxCursor || next == ask.Get("cursor"); renewed.More {
			break
		}
		ask.Set("cursor", next)
	}
	a := renewed.answer(nil).withoutDeleted()
	c.store("search "+query, query, a)
	return a, nil
}

// Get returns one version of a server; the latest if version is "". It always asks the registry. If the registry cannot
// be reached, it returns a stored entry.
func (c Client) Get(ctx context.Context, name, version string) (Answer, error) {
	if err := CheckName(name); err != nil {
		return Answer{}, err
	}
	if len(version) > maxVersion || !isPlain(version) {
		return Answer{}, InputError("the version is not allowed")
	}
	var raw json.RawMessage
	err := c.get(ctx, "/v0.1/servers/"+url.PathEscape(name)+"/versions/"+url.PathEscape(cmp.Or(version, "latest"))+"?include_deleted=true", &raw)
	key := "entry " + name + " " + version
	if err == nil {
		e, err := parseEntry(raw)
		if err != nil {
			return Answer{}, fmt.Errorf("the entry cannot be used: %w", err)
		}
		if e.Name != name || version != "" && version != "latest" && e.Version != version {
			return Answer{}, errors.New("the registry answers with another server or version")
		}
		a := Answer{Entries: []*Entry{e}, FetchedAt: c.Now().UTC()}
		c.store(key, "", a)
		return a, nil
	}
	if errors.Is(err, ErrNotFound) {
		return Answer{}, err
	}
	if s, known := c.load(key); known {
		a := s.answer(nil)
		a.Offline = err
		return a, nil
	}
	a := c.stored(func(e *Entry) bool { return e.Name == name && (version == "" || e.Version == version) })
	if a.Offline = err; len(a.Entries) == 0 {
		return Answer{}, err
	}
	return a, nil
}

// offline returns the stored answer of a search, or the stored entries that match it.
func (c Client) offline(query string, s storedAnswer, known bool, cause error) (Answer, error) {
	a := s.answer(nil)
	if !known {
		q := strings.ToLower(query)
		a = c.stored(func(e *Entry) bool {
			return strings.Contains(strings.ToLower(e.Name+"\n"+e.Title+"\n"+e.Description), q)
		})
	}
	if a = a.withoutDeleted(); len(a.Entries) == 0 {
		return Answer{}, cause
	}
	a.Offline = cause
	return a, nil
}

// stored returns the entries of all stored answers that match. Its time is that of the oldest answer.
func (c Client) stored(match func(*Entry) bool) Answer {
	var all storedAnswer
	for _, f := range c.files() {
		if s, ok := readStored(f.path); ok {
			all.Entries = append(all.Entries, s.Entries...)
			if all.FetchedAt.IsZero() || s.FetchedAt.Before(all.FetchedAt) {
				all.FetchedAt = s.FetchedAt
			}
		}
	}
	return all.answer(match)
}

// answer parses the entries that match; nil matches all. Of entries with the same name, the last one counts.
func (s storedAnswer) answer(match func(*Entry) bool) Answer {
	a := Answer{FetchedAt: s.FetchedAt, More: s.More}
	at := map[string]int{}
	for _, raw := range s.Entries {
		e, err := parseEntry(raw)
		if err != nil {
			a.Unreadable++
			continue
		}
		if match != nil && !match(e) {
			continue
		}
		if i, known := at[e.Name]; known {
			a.Entries[i] = e
			continue
		}
		at[e.Name] = len(a.Entries)
		a.Entries = append(a.Entries, e)
	}
	return a
}

// withoutDeleted leaves out the entries that the registry has deleted.
func (a Answer) withoutDeleted() Answer {
	a.Entries = slices.DeleteFunc(a.Entries, func(e *Entry) bool { return e.Status == Deleted })
	return a
}

// get sends a request and parses its answer. A registry may not redirect.
func (c Client) get(ctx context.Context, path string, out any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	base, err := url.Parse(c.URL)
	if err != nil {
		return errors.New("the address of the registry is not a URL")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.URL, "/")+path, nil)
	if err != nil {
		return errors.New("the address of the registry is not a URL")
	}
	req.Header.Set("Accept", "application/json")
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: dialpolicy.ForHost(base.Hostname(), false).Dial, DisableKeepAlives: true, ForceAttemptHTTP2: true}
	client := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err // without the URL
		}
		return fmt.Errorf("the registry cannot be reached: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	switch {
	case resp.StatusCode == http.StatusNotFound:
		return ErrNotFound
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("the registry answers with status %d", resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxPage+1))
	switch {
	case err != nil:
		return fmt.Errorf("the answer of the registry ended early: %s", problem.ClipForDisplay(err.Error(), 200))
	case len(text) > maxPage:
		return fmt.Errorf("the answer of the registry is larger than %d bytes", maxPage)
	case json.Unmarshal(text, out) != nil:
		return errors.New("the answer of the registry is not the JSON of its API")
	}
	return nil
}

// storedFile is the file of a stored answer.
type storedFile struct {
	path    string
	changed time.Time
}

func (c Client) folder() string { return filepath.Join(c.Dir, shortHash(c.URL)) }

func (c Client) path(key string) string { return filepath.Join(c.folder(), shortHash(key)+".json") }

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}

// files returns the stored answers, the latest last.
func (c Client) files() (all []storedFile) {
	entries, _ := os.ReadDir(c.folder()) // no folder: nothing is stored
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), ".json") && info.Mode().IsRegular() {
			all = append(all, storedFile{filepath.Join(c.folder(), e.Name()), info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b storedFile) int { return a.changed.Compare(b.changed) })
	return all
}

func (c Client) load(key string) (storedAnswer, bool) { return readStored(c.path(key)) }

func readStored(path string) (s storedAnswer, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return s, false
	}
	defer func() { _ = f.Close() }()
	return s, json.NewDecoder(io.LimitReader(f, maxFileBytes)).Decode(&s) == nil
}

// store keeps an answer, and deletes the oldest ones above the limit. An answer that cannot be stored is still used.
func (c Client) store(key, query string, a Answer) {
	s := storedAnswer{Query: query, FetchedAt: a.FetchedAt, More: a.More}
	for _, e := range a.Entries {
		s.Entries = append(s.Entries, e.raw)
	}
	text, err := json.Marshal(s)
	if err != nil || len(text) > maxFileBytes || os.MkdirAll(c.folder(), 0o700) != nil || ondisk.ReplaceFile(c.path(key), text) != nil {
		return
	}
	for all := c.files(); len(all) > maxCached; all = all[1:] {
		_ = os.Remove(all[0].path)
	}
}
