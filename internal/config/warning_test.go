package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestWarned checks that a text that users copy from other clients does not make a file invalid. A key without effect
// causes a warning, and nothing is expanded automatically.
func TestWarned(t *testing.T) {
	files, err := filepath.Glob("testdata/warned/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c := mustParse(t, string(archive.Files[0].Data))
			got := []string{strings.Join(c.warnings, "\n") + "\n", ""}
			for _, s := range c.Servers {
				got[1] += s.Name + " " + s.String() + "\n"
			}
			if strings.Contains(strings.ToLower(got[0]), "s3cret") {
				t.Errorf("a secret is repeated:\n%s", got[0])
			}
			for i, text := range got {
				if diff := cmp.Diff(string(archive.Files[i+1].Data), text); diff != "" && !*update {
					t.Errorf("-want +got:\n%s", diff)
				}
				archive.Files[i+1].Data = []byte(text)
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestForeignKeysAreDistinguished checks that a key of MCPProxy, or a misspelled one, is not treated as a key of
// another client.
func TestForeignKeysAreDistinguished(t *testing.T) {
	for object, table := range foreignKeys {
		known := keyNamesToSuggest(new(Config).keys())
		if object == "server" {
			known = keyNamesToSuggest(new(Server).keys())
		}
		for name, advice := range table {
			name, _, typed := strings.Cut(name, "=")
			if slices.Contains(known, name) && !typed || strings.HasSuffix(advice, ".") {
				t.Errorf("%s of %s is a key of MCPProxy, or its advice ends with a period", name, object)
			}
		}
	}
	for _, typo := range []string{"disabled_tool", "disableTools", "disabledtools", "quarantine", "trusted", "timeouts"} {
		if _, err := Parse([]byte(`{"mcpServers": {"a": {"command": "x", "`+typo+`": true}}}`), env); err == nil {
			t.Errorf("%s is accepted", typo)
		}
	}
}

func TestWarningsAreLive(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"mcpServers": {"a": {"command": "x", "env": {"TOKEN": "${TOKEN}"}}}}`)
	l, err := OpenLiveConfig(path, Options{Lookup: env})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`mcp_config.json:1:56: server "a": in TOKEN, ${TOKEN} is not a reference here, and stays unchanged (write ${env:TOKEN}; for the literal text write $${TOKEN})`}
	if diff := cmp.Diff(want, l.Warnings()); diff != "" {
		t.Error(diff)
	}
	if got := l.Current().Servers[0].Env["TOKEN"]; got != "${TOKEN}" {
		t.Errorf("the reference was expanded: %s", got)
	}
	write(`{"mcpServers": {"a": {"command": "x", "env": {"TOKEN": "${env:TOKEN}"}}}}`)
	l.reloadIfChanged()
	if len(l.Warnings()) > 0 || l.Current().Servers[0].Env["TOKEN"] != "t0p-s3cret" {
		t.Errorf("got %q", l.Warnings())
	}
}

func TestCheckServer(t *testing.T) {
	for entry, want := range map[string]string{
		`{"command": "${env:NOWHERE}", "args": ["${env:NOWHERE}"]}`: "",
		`{"url": "ftp://x"}`: "the URL must begin with http:// or https://",
		`{"args": []}`:       "the server has neither command nor url",
	} {
		var got string
		for _, m := range CheckServerEntry("a", []byte(entry)) {
			got += m.Message
		}
		if got != want {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
	}
}
