package search

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bufio"
	"encoding/json"
	"mcpproxy/internal/testutil/volume"
)

// request is a user's request to the real servers. At least one of the expected tools must be among the first five
// results, and none of the tools in NotFirst may be the first.
type request struct {
	Query    string
	Expect   []string
	NotFirst []string `json:"not_first"`
}

// askedShortly contains requests in short forms and as questions. All were written before the first one was tried.
var askedShortly = []request{
	{"open PRs", []string{"github:list_pull_requests"}, nil},
	{"merge the PR", []string{"github:merge_pull_request"}, nil},
	{"review a pr", []string{"github:create_pull_request_review"}, nil},
	{"which files does PR 7 change", []string{"github:get_pull_request_files"}, nil},
	{"comments on my PRs", []string{"github:get_pull_request_comments"}, nil},
	{"prs", []string{"github:list_pull_requests"}, nil},
	{"CI status of a PR", []string{"github:get_pull_request_status"}, nil},
	{"show the DBs", []string{"mongodb:list-databases"}, nil},
	{"drop db", []string{"mongodb:drop-database"}, nil},
	{"delete VM", []string{"azure:compute_vm_delete"}, nil},
	{"create a vm", []string{"azure:compute_vm_create"}, nil},
	{"my vms", []string{"azure:compute_vm_get"}, nil},
	{"create a virtual machine", []string{"azure:compute_vm_create"}, nil},
	{"fork repo", []string{"github:fork_repository"}, nil},
	{"k8s pods", []string{"kubernetes:kubectl_get"}, nil},
	{"k8s logs", []string{"kubernetes:kubectl_logs"}, nil},
	{"which URLs did the page request", []string{"playwright:browser_network_requests", "chromedevtools:list_network_requests"}, nil},
	{"save PDFs", []string{"execplaywright:playwright_save_as_pdf"}, nil},
	{"list RGs", []string{"azure:group_list"}, nil},
	{"AKS clusters", []string{"azure:aks_cluster_get"}, nil},
	{"edit env vars of the web app", []string{"azure:appservice_webapp_settings_update-appsettings"}, nil},
	{"list dirs", []string{"filesystem:list_directory"}, nil},
	{"how many documents are in the collection", []string{"mongodb:count"}, []string{"mongodb:delete-many", "mongodb:insert-many", "mongodb:update-many"}},
	{"how many orders were placed last week", []string{"mongodb:count", "mongodb:aggregate", "postgres:query"}, []string{"mongodb:delete-many", "mongodb:insert-many", "mongodb:update-many"}},
	{"how many rows are there", []string{"mongodb:count", "postgres:query"}, []string{"mongodb:delete-many", "mongodb:insert-many", "mongodb:update-many"}},
	{"How many customers signed up?", []string{"mongodb:count", "postgres:query"}, []string{"mongodb:delete-many", "mongodb:insert-many", "mongodb:update-many"}},
	{"number of records in a collection", []string{"mongodb:count"}, []string{"mongodb:delete-many"}},
	{"how many open issues are there", []string{"github:list_issues", "github:search_issues"}, []string{"github:create_issue", "github:update_issue"}},
	{"how much space does a collection take", []string{"mongodb:collection-storage-size"}, []string{"mongodb:drop-collection"}},
	{"how big is the collection", []string{"mongodb:collection-storage-size"}, []string{"mongodb:drop-collection", "mongodb:create-collection"}},
	{"how large is the orders collection", []string{"mongodb:collection-storage-size"}, []string{"mongodb:drop-collection", "mongodb:create-collection"}},
	{"how big is this file", []string{"filesystem:get_file_info", "filesystem:list_directory_with_sizes"}, []string{"filesystem:write_file", "filesystem:move_file"}},
	{"what is the size of the database", []string{"mongodb:db-stats"}, []string{"mongodb:drop-database"}},
	{"how big is the database", []string{"mongodb:db-stats"}, []string{"mongodb:drop-database"}},
	{"how do I delete many documents", []string{"mongodb:delete-many"}, nil},
	{"delete many documents", []string{"mongodb:delete-many"}, nil},
	{"how can I drop a collection", []string{"mongodb:drop-collection"}, nil},
	{"insert many documents", []string{"mongodb:insert-many"}, nil},
}

// sharedRequests returns the requests of the shared test data.
func sharedRequests(t *testing.T) (all []request) {
	shared := os.Getenv("MCPPROXY_SHARED")
	if shared == "" {
		shared = "../../../../shared"
	}
	f, err := os.Open(filepath.Join(shared, "cases", "search.jsonl"))
	if err != nil {
		t.Skipf("the shared test data is missing: %v", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// TestShortFormsAndQuestions checks that short forms find the tools of the long form, and that a question for a number
// finds tools that count, never tools that change anything.
func TestShortFormsAndQuestions(t *testing.T) {
	volume.SkipUnderRace(t)
	var parts []*ServerIndexPart
	for _, p := range realServers(t) {
		parts = append(parts, p)
	}
	v := NewIndex(parts).View(nil)
	for _, r := range append(sharedRequests(t), askedShortly...) {
		hits, _ := v.Search(nil, r.Query, 5, nil)
		found := v.names(hits)
		if !slices.ContainsFunc(r.Expect, func(id string) bool { return slices.Contains(found, id) }) ||
			len(found) > 0 && slices.Contains(r.NotFirst, found[0]) {
			t.Errorf("%q finds %s, want %s", r.Query, strings.Join(found, " "), strings.Join(r.Expect, " or "))
		}
	}
}
