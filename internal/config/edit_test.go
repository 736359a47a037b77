package config

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/tailscale/hujson"

	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/problem"
)

// make runs the edit in a line: "add NAME JSON", "remove NAME", "set NAME KEY JSON" or "unset NAME KEY".
func (f *fixture) make(t *testing.T, line string) error {
	t.Helper()
	words := append(strings.SplitN(line, " ", 4), "", "", "")
	switch words[0] {
	case "add":
		var s ServerEdit
		if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "add "+words[1]+" ")), &s); err != nil {
			t.Fatal(err)
		}
		return f.AddServers(nil, NamedEdit{words[1], s})
	case "remove":
		return f.RemoveServer(words[1])
	case "set":
		return f.SetServer(nil, words[1], words[2], json.RawMessage(words[3]))
	case "unset":
		return f.SetServer(nil, words[1], words[2], nil)
	}
	t.Fatalf("unknown edit %q", line)
	return nil
}

// TestEdits runs cases that each contain a file as a user wrote it, edits, and the resulting file. "before" is
// missing if there is no file. "·" represents "\r".
func TestEdits(t *testing.T) {
	files, err := filepath.Glob("testdata/edit/*.txtar")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d cases: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts := map[string]string{}
			for _, f := range archive.Files {
				texts[f.Name] = string(f.Data)
			}
			f := open(t, strings.ReplaceAll(texts["before"], "·", "\r"))
			var problems []string
			for line := range strings.Lines(texts["edits"]) {
				before := contents(t, f.path)
				if err := f.make(t, strings.TrimSuffix(line, "\n")); err != nil {
					problems = append(problems, string(problem.From(err).Code)+": "+strings.ReplaceAll(err.Error(), f.path, "FILE")+" ("+problem.From(err).Hint+")\n")
					if after := contents(t, f.path); after != before {
						t.Errorf("%q was rejected but changed the file to:\n%s", line, after)
					}
				}
			}
			after := contents(t, f.path)
			if c := mustParse(t, after); !cmp.Equal(c, f.Current(), exported) {
				t.Errorf("the file differs from the current configuration: %s", cmp.Diff(c, f.Current(), exported))
			}
			if std, err := hujson.Parse([]byte(texts["before"])); err == nil && std.IsStandard() && !json.Valid([]byte(after)) {
				t.Error("standard JSON did not stay standard JSON")
			}
			texts["after"], texts["problems"] = strings.ReplaceAll(after, "\r", "·"), strings.Join(problems, "")
			var got []txtar.File
			for _, name := range []string{"before", "edits", "after", "problems"} {
				if texts[name] != "" {
					got = append(got, txtar.File{Name: name, Data: []byte(texts[name])})
				}
			}
			formatted := txtar.Format(&txtar.Archive{Comment: archive.Comment, Files: got})
			if *update {
				if err := os.WriteFile(file, formatted, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(formatted)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// contents returns the text of the file, "" if there is none.
func contents(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(b)
}

// FuzzEdit edits any valid file. The edit makes exactly the requested change and keeps every comment, and reverting
// it leads to the same configuration.
func FuzzEdit(f *testing.F) {
	files, err := filepath.Glob("testdata/edit/*.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(archive.Files[0].Data), "true")
	}
	f.Add(`{"mcpServers":[{"command":"x","name":"a"}/**/,],}`, `["x"]`)
	f.Add("\uFEFF{\r\n\"mcpServers\" :\t{ // x\r\n}\r\n}", `{"a": {"readOnlyHint": true}}`)
	f.Fuzz(func(t *testing.T, text, value string) {
		before, err := Parse([]byte(text), env)
		if err != nil {
			return
		}
		const name = "zzzz"
		added := fuzzed(t, text, func(d document) ([]textedit.Splice, error) {
			return d.addServerSplices(name, []byte(`{"command":"new","args":["1","2"],"enabled":false}`))
		})
		if added == nil {
			return // the name is in use
		}
		after := mustParse(t, string(added))
		if diff := cmp.Diff([]string{"mcpServers." + name}, changedKeys(before, after, acceptEveryKey)); diff != "" {
			t.Fatalf("added:\n%s\n%s", added, diff)
		}
		if got, want := comments(t, added), comments(t, []byte(text)); !cmp.Equal(got, want) {
			t.Errorf("comments of\n%s\nlost in\n%s", text, added)
		}
		last := after.Servers[len(after.Servers)-1]
		if last.Name != name || last.Command != "new" || len(last.Args) != 2 || last.Enabled {
			t.Errorf("added %v", last)
		}
		removed := fuzzed(t, string(added), func(d document) ([]textedit.Splice, error) {
			servers, i := d.findServer(name)
			return d.SplicesToRemove(servers, i), nil
		})
		if keys := changedKeys(before, mustParse(t, string(removed)), acceptEveryKey); keys != nil {
			t.Errorf("%v changed after adding and removing a server:\n%s\n%s\n%s", keys, text, added, removed)
		}
		if got, want := comments(t, removed), comments(t, []byte(text)); !cmp.Equal(got, want) {
			t.Errorf("comments of\n%s\nlost in\n%s", text, removed)
		}
		if !json.Valid([]byte(value)) {
			return // rejected before
		}
		for i := range before.Servers {
			for _, field := range []string{"enabled", "args", "quarantined", "hint_overrides", "command"} {
				set := fuzzed(t, text, func(d document) ([]textedit.Splice, error) {
					servers, at := d.findServer(before.Servers[i].Name)
					return d.setServerKeySplices(textedit.ContainerOf(servers.Items[at].Value), field, json.RawMessage(value))
				})
				if c, err := Parse(set, env); err == nil {
					for _, key := range changedKeys(before, c, acceptEveryKey) {
						if key != joinPath("mcpServers", before.Servers[i].Name) {
							t.Errorf("%s changed:\n%s", key, set)
						}
					}
				} else if _, mistake := (sourceText{set}).parseTree(); mistake != nil && len(set) < textedit.MaxSize {
					t.Errorf("the text is no longer JSON: %v\n%s", mistake, set)
				}
			}
		}
	})
}

// fuzzed edits a text, and returns nil when the edit is rejected.
func fuzzed(t *testing.T, text string, change func(document) ([]textedit.Splice, error)) []byte {
	out, err := editedText([]byte(text), change)
	if err != nil && !errors.Is(err, problem.From(err)) {
		t.Fatal(err)
	}
	return out
}

// comments returns the texts between the values, without white space and commas.
func comments(t *testing.T, text []byte) []string {
	v, mistake := sourceText{[]byte(strings.TrimPrefix(string(text), byteOrderMark))}.parseTree()
	if mistake != nil {
		t.Fatalf("%v\n%s", mistake, text)
	}
	var out []string
	add := func(extra hujson.Extra) {
		for len(extra) > 0 {
			n := textedit.TokenLength(extra)
			if n > 1 && extra[0] == '/' {
				out = append(out, strings.TrimRight(string(extra[:n]), "\r"))
			}
			extra = extra[n:]
		}
	}
	for x := range v.All() {
		add(x.BeforeExtra)
		add(x.AfterExtra)
		switch c := x.Value.(type) {
		case *hujson.Object:
			add(c.AfterExtra)
		case *hujson.Array:
			add(c.AfterExtra)
		}
	}
	slices.Sort(out) // the golden files check their positions
	return out
}

// TestOverrideHints checks that overriding the hints of one tool changes nothing else, including comments.
func TestOverrideHints(t *testing.T) {
	const hints = `{"destructiveHint":true,"readOnlyHint":false}`
	for file, want := range map[string]string{
		"{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}\n": "{\"mcpServers\": {\"a\": {\"command\": \"x\", \"hint_overrides\": {\"t\": {\"destructiveHint\": true, \"readOnlyHint\": false}}}}}\n",
		`{"mcpServers": {"a": {
  "hint_overrides": {
    // what it says of itself is wrong
    "t": {"title": "T", "destructiveHint": false /* was so */, "openWorldHint": true}, // one
    "o*": {"readOnlyHint": true},
  },
  "command": "x", // the program
}}}
`: `{"mcpServers": {"a": {
  "hint_overrides": {
    // what it says of itself is wrong
    "t": {"title": "T", "destructiveHint": true /* was so */, "openWorldHint": true, "readOnlyHint": false}, // one
    "o*": {"readOnlyHint": true},
  },
  "command": "x", // the program
}}}
`,
	} {
		f := open(t, file)
		for range 2 { // the second time the hints are already set
			if err := f.SetHintOverride(nil, "a", "t", []byte(hints)); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, contents(t, f.path)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		}
		if err := f.SetHintOverride(nil, "b", "t", []byte(hints)); problem.From(err).Code != problem.ServerNotFound {
			t.Errorf("unknown server: %v", err)
		}
	}
}
