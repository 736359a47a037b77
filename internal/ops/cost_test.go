package ops

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"mcpproxy/internal/catalog/catalogtest"
	"mcpproxy/internal/config"
	"mcpproxy/internal/testutil/volume"
	"mcpproxy/internal/upstream"
)

// thirty are requests of the real servers, as the definition of query says to write them,
// each with a tool that does it.
var thirty = [][2]string{
	{"create github issue", "github:create_issue"},
	{"list pull requests", "github:list_pull_requests"},
	{"merge pull request", "github:merge_pull_request"},
	{"search code on github", "github:search_code"},
	{"read text file", "filesystem:read_text_file"},
	{"list directory", "filesystem:list_directory"},
	{"move file", "filesystem:move_file"},
	{"take screenshot of page", "playwright:browser_take_screenshot"},
	{"click element in browser", "playwright:browser_click"},
	{"fill form in browser", "playwright:browser_fill_form"},
	{"list network requests", "chromedevtools:list_network_requests"},
	{"record performance trace", "chromedevtools:performance_start_trace"},
	{"count documents in collection", "mongodb:count"},
	{"find documents in mongodb", "mongodb:find"},
	{"create index on collection", "mongodb:create-index"},
	{"run sql query on postgres", "postgres:query"},
	{"commit changes with git", "gitcyan:git_commit"},
	{"show git history", "gitcyan:git_log"},
	{"create git branch", "gitcyan:git_branch"},
	{"get pod logs kubernetes", "kubernetes:kubectl_logs"},
	{"scale kubernetes deployment", "kubernetes:kubectl_scale"},
	{"install helm chart", "kubernetes:install_helm_chart"},
	{"create notion page", "notion:API-post-page"},
	{"query notion database", "notion:API-query-data-source"},
	{"draw pie chart", "antvchart:generate_pie_chart"},
	{"write cells to excel sheet", "excel:excel_write_to_sheet"},
	{"list azure virtual machines", "azure:compute_vm_get"},
	{"get secret from key vault", "azure:keyvault_secret_get"},
	{"remember fact about person", "memory:add_observations"},
	{"look up library documentation", "context7:query-docs"},
}

// realServers has the lists of the real servers of the shared test data, variants left out.
func realServers(t *testing.T) map[string][]string {
	t.Helper()
	dir := os.Getenv("MCPPROXY_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	dir = filepath.Join(dir, "real-servers")
	index, err := os.ReadFile(filepath.Join(dir, "index.json"))
	if err != nil {
		t.Skipf("the shared test data is not here: %v", err)
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

// TestWhatAnAnswerCosts: thirty requests of 25 real servers have the right tool each, and
// cost 2,300 tokens on average at most, a token being four bytes.
func TestWhatAnAnswerCosts(t *testing.T) {
	volume.SkipUnderRace(t)
	lists := realServers(t)
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
	for _, r := range thirty {
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
			t.Logf("%q finds %s as number %d", r[0], r[1], at+1)
		}
		if at == 0 {
			first++
		}
	}
	tokens := bytes / 4 / len(thirty)
	t.Logf("%d tokens on average, first place %d of %d", tokens, first, len(thirty))
	if tokens > 2300 {
		t.Errorf("%d tokens on average", tokens)
	}
}
