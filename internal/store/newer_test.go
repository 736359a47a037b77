package store_test

import (
	"path/filepath"
	"testing"

	"mcpproxy/internal/activity"
)

// A database from before records were found by their client has no such column
// of its chunks. It gets them when they are asked for.
func TestClientsOfAnOlderDatabase(t *testing.T) {
	t.Parallel()
	const n = 5000
	dir := goodFile(t, n)
	raw := database(t, filepath.Join(dir, "mcpproxy.db"))
	gone, err := raw.Exec("DELETE FROM activity_column WHERE id >= 10 << 40")
	if err != nil {
		t.Fatal(err)
	}
	if chunks, err := gone.RowsAffected(); err != nil || chunks < 2 {
		t.Fatalf("%d chunks had clients, %v", chunks, err)
	}
	if err := raw.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // what was made is there the second time
		l, db := openBoth(t, dir)
		page, err := l.List(t.Context(), activity.Filter{Clients: []string{"client 3"}})
		if err != nil || page.Total != n/5 || page.Incomplete {
			t.Errorf("%d records, incomplete %v, %v", page.Total, page.Incomplete, err)
		}
		if page, err := l.List(t.Context(), activity.Filter{Since: page.Records[0].Timestamp}); err != nil || page.Total == 0 || page.Total > 10 {
			t.Errorf("since the newest: %d, %v", page.Total, err)
		}
		closeBoth(t, l, db)
	}
}
