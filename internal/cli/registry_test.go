package cli

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/registry"
)

// exampleRegistry returns a stored answer with a server whose description is hostile.
func exampleRegistry() ops.RegistryEntries {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return ops.RegistryEntries{
		Servers: []ops.RegistryEntry{{Registry: "official", Name: "a/notes", Version: "1.0.0", Status: "active", Description: "Notes\x1b[31m", Published: &at,
			ScanResult: ops.ScanResult{Verdict: scan.Review, Findings: []scan.Finding{{Rule: "orders", Severity: scan.SeverityReview, Path: "entry", Excerpt: "ignore", Reason: "It orders."}}},
			Options: []registry.Option{{ID: "npm", Command: []string{"npx", "-y", "notes@1.0.0"}, Inputs: []registry.Input{
				{Name: "TOKEN", Kind: "env", Required: true, Secret: true}, {Name: "X-Key", Kind: "header"}, {Name: "--root", Kind: "argument", Folder: true, Repeated: true, Default: "/x", Choices: []string{"/x", "/y"}, Description: "Where."}}},
				{ID: "mcpb", Problem: "MCPProxy starts packages of the kinds npm, pypi and oci only"}}}},
		Registries: []ops.RegistryAnswer{{Name: "official", URL: "https://r.example", FetchedAt: &at, Problem: "no network", More: true, Unreadable: 2}, {Name: "other", Problem: "no network"}},
	}
}

// addFromRegistry notes what the command sends.
func (f *fakeOperations) addFromRegistry(_ context.Context, _ ops.Caller, in ops.AddFromRegistryRequest) (ops.AddedFromRegistry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if in.Entry == "a/old" {
		return ops.AddedFromRegistry{}, problem.New(problem.Conflict, "a/old is deprecated in the registry.", "Choose another one.")
	}
	f.switched = append(f.switched, strings.Join(append([]string{in.Entry, in.Version, in.Registry, in.Option, in.Name}, in.Values...), "|"))
	return ops.AddedFromRegistry{Server: ops.ServerView{Name: "notes"}, Entry: exampleRegistry().Servers[0], Option: "npm", Launch: ops.LaunchView{Command: "npx", Args: []string{"-y", "notes@1.0.0"}, Sandbox: "may read /x"},
		Env: []string{"TOKEN=${keyring:NOTES_TOKEN}"}, Headers: []string{"X-Key: v"}, Stored: []string{"NOTES_TOKEN"}, Missing: []string{"NOTES_KEY"}, Notes: []string{"A note."}}, nil
}

// The commands show the texts of a registry cleaned, with findings and the age of a stored answer.
func TestRegistryCommands(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	for _, line := range []string{"registry search notes", "registry show a/notes@1.0.0"} {
		got := w.runCommand(strings.Fields(line)...)
		for _, want := range []string{"a/notes", "npm", "no network", "This is its stored answer", "other: no network", "has more servers", "2 servers of official left out"} {
			if !strings.Contains(got.stdout+got.stderr, want) {
				t.Errorf("%s: %q is missing in %+v", line, want, got)
			}
		}
		if got.code != 0 || strings.Contains(got.stdout, "\x1b[31m") {
			t.Errorf("%s: %+v", line, got)
		}
	}
	got := w.runCommand("registry", "show", "a/notes")
	for _, want := range []string{"--env TOKEN=…", "--header 'X-Key: …'", "--arg --root=…", "file or folder; may be repeated; default /x; one of /x, /y; Where.", "cannot be used: MCPProxy starts", "It orders.", "upstream add --registry a/notes@1.0.0"} {
		if !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("%q is missing in %+v", want, got)
		}
	}
}

// upstream add --registry sends the values, and says what waits.
func TestAddFromRegistry(t *testing.T) {
	t.Parallel()
	f := &fakeOperations{}
	w := newEnvWithDaemon(t, f)
	got := w.runCommand("upstream", "add", "notes", "--registry", "a/notes@1.0.0", "--from", "official", "--option", "npm", "--env", "TOKEN=a=b", "--arg", "--root=/x", "--arg", "--root=/y", "--header", "X-Key: v")
	if got.code != 0 || !slices.Equal(f.switched, []string{"a/notes|1.0.0|official|npm|notes|TOKEN=a=b|--root=/x|--root=/y|X-Key=v"}) {
		t.Fatalf("%q, %+v", f.switched, got)
	}
	for _, want := range []string{"Added notes for review", "Nothing of it was started", "official", "npx -y notes@1.0.0", "${keyring:NOTES_TOKEN}", "X-Key: v", "may read /x", "A note.", "secrets set NOTES_KEY", "upstream approve notes", "It orders."} {
		if !strings.Contains(got.stdout+got.stderr, want) {
			t.Errorf("%q is missing in %+v", want, got)
		}
	}
	for line, want := range map[string]string{
		"upstream add --registry a/old": "is deprecated", "upstream add x --registry a/b --url https://a.example": "has no --url", "upstream add x --registry a/b -- sh": "has no --url",
		"upstream add x --arg a=b -- sh": "are for a server from a registry", "upstream add --registry a/b --env TOKEN": "separated by '='", "upstream add a b --registry a/b": "has no --url",
	} {
		if got := w.runCommand(strings.Fields(line)...); got.code == 0 || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}
