package cli

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// exampleVersions returns the versions of a server with an update by another publisher.
func exampleVersions(name string) ops.ServerVersions {
	published := parseRFC3339("2026-01-01T00:00:00Z")
	return ops.ServerVersions{Name: name, Package: "npm:notes-mcp", Outdated: true, Pinned: &ops.VersionView{Version: "1.0.0", Integrity: "sha512-old", Publisher: "alice"},
		Newest: &ops.VersionView{Version: "1.1.0", Integrity: "sha512-new", Published: &published, Publisher: "mallory"}, Warnings: []string{"The publisher changed from alice to mallory."}}
}

// updateServer has an update whose definitions are unchanged, except of the server changed.
func (f *fakeOperations) updateServer(_ context.Context, _ ops.Caller, in ops.UpdateRequest) (ops.ServerVersions, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	v := exampleVersions(in.Name)
	switch {
	case in.Approve == "approved":
		f.switched = append(f.switched, in.Name)
		return ops.ServerVersions{Name: in.Name, Package: v.Package, Pinned: v.Newest, Switched: true}, nil
	case in.Approve != "":
		return v, problem.New(problem.Conflict, "no", "")
	case in.Start:
		v.Started, v.Approval, v.Unchanged = true, "approved", 3
		if in.Name == "changed" {
			v.Changes = []ops.TrialChange{{Name: "look", Change: "changed", Changes: []approval.Difference{{Path: "/description", Kind: "changed", Old: json.RawMessage(`"a"`), New: json.RawMessage(`"b\u001b[31m"`)}}}}
		}
	}
	return v, nil
}

// update shows the versions and the differences, and asks before each step. --yes switches only if no definition
// changes.
func TestUpstreamUpdate(t *testing.T) {
	t.Parallel()
	f := &fakeOperations{}
	w := newEnvWithDaemon(t, f)
	got := w.runCommand("upstream", "update", "notes")
	if got.code != problem.ExitUsage || !strings.Contains(got.stderr, "The publisher changed from alice to mallory.") || len(f.switched) != 0 {
		t.Errorf("%+v", got)
	}
	got = w.runCommand("upstream", "update", "changed", "--yes")
	if got.code != problem.ExitUsage || !strings.Contains(got.stderr, "/description") || strings.Contains(got.stderr, "\x1b[31m") || len(f.switched) != 0 {
		t.Errorf("%+v", got)
	}
	got = w.runCommand("upstream", "update", "notes", "--yes")
	if got.code != 0 || !strings.Contains(got.stdout, "notes now starts version 1.1.0 of npm:notes-mcp") || len(f.switched) != 1 {
		t.Errorf("%+v", got)
	}
	if got = w.runCommand("upstream", "update", "notes", "--dry-run"); got.code != 0 || !strings.Contains(got.stdout, "sha512-new") {
		t.Errorf("%+v", got)
	}
	if got = w.runCommand("upstream", "outdated"); !strings.Contains(got.stdout, "1.1.0") || !strings.Contains(got.stdout, "it names several packages") {
		t.Errorf("%+v", got)
	}
}
