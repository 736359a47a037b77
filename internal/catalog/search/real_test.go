package search

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/testutil/volume"
)

// realServers returns a part for each real server of the shared test data. It omits servers that are variants of
// another.
func realServers(t *testing.T) map[string]*ServerIndexPart {
	t.Helper()
	shared := os.Getenv("MCPPROXY_SHARED")
	if shared == "" {
		shared = "../../../../shared"
	}
	dir := filepath.Join(shared, "real-servers")
	index, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Skipf("the shared test data is missing: %v", err)
	}
	var servers []struct {
		Slug    string
		Variant bool
	}
	if err := json.Unmarshal(index, &servers); err != nil {
		t.Fatal(err)
	}
	parts := map[string]*ServerIndexPart{}
	for _, s := range servers {
		if s.Variant {
			continue
		}
		var list struct{ Tools []json.RawMessage }
		raw, err := os.ReadFile(filepath.Join(dir, s.Slug+".tools.json"))
		if err == nil {
			err = json.Unmarshal(raw, &list)
		}
		if err != nil {
			t.Fatal(err)
		}
		var tools []*tool.Definition
		for _, raw := range list.Tools {
			d, err := tool.ParseDefinition(s.Slug, raw)
			if err != nil {
				t.Fatal(err)
			}
			tools = append(tools, &d)
		}
		parts[s.Slug] = NewServerIndexPart(s.Slug, tools)
	}
	return parts
}

// TestFirstQueries checks that typical first queries of a new user find the right tools, among few servers and among
// many.
func TestFirstQueries(t *testing.T) {
	volume.SkipUnderRace(t)
	all := realServers(t)
	var every []string
	for name := range all {
		every = append(every, name)
	}
	for _, c := range []struct {
		query         string
		first, behind string // tools, or servers if they end with a colon
	}{
		{"navigate to a web page", "playwright:browser_navigate", "chromedevtools:performance_start_trace"},
		{"remember a fact", "memory:", "chromedevtools:fill_form"},
		{"read a file", "filesystem:read_text_file", "filesystem:read_file"},
	} {
		for _, names := range [][]string{{"playwright", "chromedevtools"}, {"playwright", "chromedevtools", "memory", "filesystem"},
			{"playwright", "chromedevtools", "memory", "filesystem", "github", "everything", "sequentialthinking"}, every} {
			var parts []*ServerIndexPart
			for _, name := range names {
				parts = append(parts, all[name])
			}
			v := NewIndex(parts).View(nil)
			hits, _ := v.Search(nil, c.query, 100, nil)
			found := v.names(hits)
			first, behind := place(found, c.first), place(found, c.behind)
			here := len(names) > 2 || strings.HasPrefix(c.first, "playwright")
			if here && (first > 2 || behind < first) {
				t.Errorf("among %d servers %q finds %s as number %d and %s as number %d", len(names), c.query, c.first, first+1, c.behind, behind+1)
			}
		}
	}
}

// place returns the index of the first name that matches beginning, or the length of names if there is none.
func place(names []string, beginning string) int {
	for i, name := range names {
		if name == beginning || strings.HasSuffix(beginning, ":") && strings.HasPrefix(name, beginning) {
			return i
		}
	}
	return len(names)
}
