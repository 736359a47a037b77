package ops

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/testutil/catalogtest"
	"mcpproxy/internal/testutil/volume"
	"mcpproxy/internal/upstream"
)

// readRequests returns the requests in testdata/requests.tsv. Each has a query, written as the description of the query
// parameter demands, and a matching tool of the real servers.
func readRequests(t *testing.T) (requests [][2]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "requests.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		query, tool, _ := strings.Cut(strings.TrimSpace(line), "\t")
		requests = append(requests, [2]string{query, tool})
	}
	return requests
}

// realServers returns the tool lists of the real servers in the shared test data, without variants.
func realServers(t *testing.T) map[string][]string {
	t.Helper()
	dir := os.Getenv("MCPPROXY_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	dir = filepath.Join(dir, "real-servers")
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
	lists := map[string][]string{}
	for _, s := range servers {
		if s.Variant {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, s.Slug+".tools.json"))
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		for _, one := range list.Tools {
			lists[s.Slug] = append(lists[s.Slug], string(one))
		}
	}
	return lists
}

// TestSearchResultSize checks that thirty requests to 25 real servers find the right tool and return at most 2,300
// tokens on average. A token is estimated as four bytes.
func TestSearchResultSize(t *testing.T) {
	volume.SkipUnderRace(t)
	lists, requests := realServers(t), readRequests(t)
	w := newWorld(t, func(c *config.Config) {
		for name := range lists {
			withServers(c, name)
		}
	})
	for name, list := range lists {
		w.SetToolsOn(name, list...)
		w.Catalog.StateChanged(upstream.State{Name: name, Phase: upstream.Ready})
	}
	w.Catalog.Publish()
	told := map[string]bool{}
	bytes, first := 0, 0
	for _, r := range requests {
		a, raw := w.answer(RetrieveRequest{Query: r[0], UsageSeen: func(usage string) bool {
			before := told[usage]
			told[usage] = true
			return before
		}})
		bytes += len(raw)
		at := slices.IndexFunc(a.Tools, func(f catalogtest.RetrievedTool) bool { return f.Name == r[1] })
		if at < 0 {
			t.Errorf("%q does not find %s", r[0], r[1])
		} else if at > 2 {
			t.Logf("%q finds %s at rank %d", r[0], r[1], at+1)
		}
		if at == 0 {
			first++
		}
	}
	tokens := bytes / 4 / len(requests)
	t.Logf("%d tokens on average, first place %d of %d", tokens, first, len(requests))
	if tokens > 2300 {
		t.Errorf("%d tokens on average", tokens)
	}
}
