package classify

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/gate/policy"
)

// corpora returns a subdirectory with public statements from outside this project. It skips the test if that is
// missing.
func corpora(t testing.TB, part string) string {
	t.Helper()
	dir := os.Getenv("MCPPROXY_LANES")
	if dir == "" {
		t.Skip("MCPPROXY_LANES is not set to a directory with third-party statements and command lines")
	}
	dir = filepath.Join(dir, part)
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("%s does not exist", dir)
	}
	return dir
}

func files(t *testing.T, dir string, names ...string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && slices.ContainsFunc(names, func(n string) bool { return strings.HasSuffix(path, n) }) {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var braces = strings.NewReplacer("{", "", "}", "")

// TestTextToSQL checks that at least 95 % of the queries in public text-to-SQL sets are classified as reads.
func TestTextToSQL(t *testing.T) {
	check := func(what string, statements []string) {
		read, bad := 0, 0
		for _, text := range statements {
			if v := classifySQL(text); v.Operation == policy.Read {
				read++
			} else if bad++; bad < 40 && os.Getenv("MCPPROXY_LANES_SHOW") != "" {
				t.Logf("%s (%s): %.300s", v.Operation, v.Word, text)
			}
		}
		share := 100 * float64(read) / float64(max(1, len(statements)))
		t.Logf("%s: %d of %d statements classified as reads (%.1f %%)", what, read, len(statements), share)
		if share < 95 {
			t.Errorf("%s: only %.1f %%", what, share)
		}
	}
	byFile := map[string][]string{}
	for _, path := range files(t, corpora(t, "defog-ai+sql-eval"), ".csv") {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		reader := csv.NewReader(f)
		reader.FieldsPerRecord, reader.LazyQuotes = -1, true
		rows, err := reader.ReadAll()
		_ = f.Close()
		if err != nil || len(rows) == 0 {
			t.Fatal(path, err)
		}
		column := slices.Index(rows[0], "query")
		if column < 0 {
			continue
		}
		for _, row := range rows[1:] {
			for _, one := range strings.Split(row[column], ";") { // several answers to one question
				if len(strings.Fields(one)) > 1 {
					byFile["defog-ai/sql-eval"] = append(byFile["defog-ai/sql-eval"], braces.Replace(one))
				}
			}
		}
	}
	for _, path := range files(t, corpora(t, "jkkummerfeld+text2sql-data"), ".json") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var entries []struct{ SQL []string }
		if len(text) == 0 || json.Unmarshal(text, &entries) != nil {
			continue
		}
		for _, e := range entries {
			byFile["jkkummerfeld/text2sql-data"] = append(byFile["jkkummerfeld/text2sql-data"], e.SQL...)
		}
	}
	for what, statements := range byFile {
		check(what, statements)
	}
}
