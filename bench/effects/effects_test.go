package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/gate/classify"
	"mcpproxy/internal/gate/policy"
)

func dataDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MCPPROXY_SHARED")
	if dir == "" {
		dir = "../../../shared"
	}
	if _, err := os.Stat(filepath.Join(dir, "real-servers")); err != nil {
		t.Skipf("the labelled data is missing, set MCPPROXY_SHARED: %v", err)
	}
	return dir
}

// No tool whose name contains a word for deleting is inferred to be read-only. A pattern that is independent of the
// classifier finds these names.
func TestNamedLikeDeleting(t *testing.T) {
	dir := dataDir(t)
	sets := map[string][]declaredTool{}
	servers, err := readRealServers(dir)
	if err != nil {
		t.Fatal(err)
	}
	sets["real-servers"] = servers
	for _, path := range corpusFiles() {
		if sets[path], err = readCorpus(filepath.Join(dir, path)); err != nil {
			t.Fatal(err)
		}
	}
	total := 0
	for set, samples := range sets {
		like, read := deletionsInferredRead(samples)
		total += like
		if like == 0 || len(read) > 0 {
			t.Errorf("%s: %d are named like a deletion, inferred to read: %v", set, like, read)
		}
	}
	if total < 1000 {
		t.Errorf("only %d names like a deletion were found", total)
	}
}

// No tool that accepts a program, or a query that can write, is inferred to be read-only, whatever its name and its
// server. Patterns that are independent of the classifier find these parameters.
func TestTakingCode(t *testing.T) {
	dir := dataDir(t)
	samples, err := readRealServers(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range corpusFiles() {
		more, err := readCorpus(filepath.Join(dir, path))
		if err != nil {
			t.Fatal(err)
		}
		samples = append(samples, more...)
	}
	tools, parameters := toolsTakingCode(samples)
	if len(tools) < 150 {
		t.Errorf("only %d tools that take code were found", len(tools))
	}
	for i, s := range tools {
		if in := classify.InferHints(s.definition); in.Operation == policy.Read {
			t.Errorf("%s takes %q and is inferred to read: %s", s.definition.ID, parameters[i], in.Reason)
		}
	}
}

// Inferred hints must keep agreeing with the declared hints of real servers, also for the half of the servers that was not used
// for tuning. The bounds are a little below the measured rates.
func TestAgreement(t *testing.T) {
	servers, err := readRealServers(dataDir(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name                                  string
		keep                                  func(declaredTool) bool
		readPrecision, readRecall, deleteSure float64
	}{
		{"tuned", func(s declaredTool) bool { return !isHeldOut(s.definition.ID.Server) }, 0.96, 0.75, 0.95},
		{"held", func(s declaredTool) bool { return isHeldOut(s.definition.ID.Server) }, 0.93, 0.65, 0.93},
	} {
		m := newConfusionMatrix(servers, c.keep)
		precision, recall := m.precisionAndRecall(policy.Read)
		sure, _ := m.precisionAndRecall(policy.Destructive)
		if precision < c.readPrecision || recall < c.readRecall || sure < c.deleteSure {
			var out strings.Builder
			m.print(&out, c.name)
			t.Error(out.String())
		}
	}
	reading, readers, changing, changers := countWarned(servers, func(declaredTool) bool { return true })
	if fraction(reading, readers) > 0.13 || fraction(changing, changers) < 0.84 {
		t.Errorf("advise would warn of %d of %d that read, %d of %d that do not", reading, readers, changing, changers)
	}
	// A tool that its server declares destructive is inferred to be read-only only if its name clearly describes a
	// read.
	for _, s := range servers {
		in := classify.InferHints(s.definition)
		if s.declared == saysDelete && in.Operation == policy.Read && !strings.Contains(in.Reason, "its name says") {
			t.Errorf("%s is declared destructive and inferred to read: %s", s.definition.ID, in.Reason)
		}
	}
}

func TestPatternOfDeleting(t *testing.T) {
	for name, want := range map[string]bool{
		"delete_repo": true, "bulkDelete": true, "users.remove": true, "git_rm": true, "DropTable": true, "cache-flush": true, "get_deleted": true,
		"get_skills": false, "list_dropdowns": false, "dropbox_get": false, "form_get": false, "get_cameras": false, "model_list": false,
	} {
		if isNamedLikeDeletion(name) != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
}
