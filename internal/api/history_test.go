package api

import (
	"testing"

	"mcpproxy/internal/problem"
)

// TestDownloadsHaveNameAndType checks that an export has a file name and a content type. An export that fails before
// its first byte returns a problem document.
func TestDownloadsHaveNameAndType(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := serve(t, f)
	r := ask(t, s, "GET", Prefix+"/activity/export?format=csv&server=github&status=blocked,error", "")
	if r.status != 200 || r.body != "id\n1\n" || r.header.Get("Content-Type") != "text/csv; charset=utf-8" || r.header.Get("Content-Disposition") != "attachment; filename=log.csv" {
		t.Errorf("%d %s %v", r.status, r.body, r.header)
	}
	if got := f.filters[0]; len(got.Servers) != 1 || len(got.Statuses) != 2 {
		t.Errorf("the filter is %+v", got)
	}
	f.failure = problem.New(problem.AuditUnavailable, "No.", "")
	if r = ask(t, s, "GET", Prefix+"/activity/export", ""); problemOf(t, r).Code != problem.AuditUnavailable || r.header.Get("Content-Disposition") != "" {
		t.Errorf("%d %s %v", r.status, r.body, r.header)
	}
	for _, wrong := range []string{"export?limit=1", "export?format=xml", "summary?cursor=YQ", "summary?group=actor", "export?start_time=2026-02-01&end_time=2026-01-01"} {
		if r := ask(t, s, "GET", Prefix+"/activity/"+wrong, ""); r.status != 400 || problemOf(t, r).Code != problem.InvalidParameter {
			t.Errorf("%s: %d %s", wrong, r.status, r.body)
		}
	}
}
