package ops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/pelletier/go-toml/v2"
	"github.com/tailscale/hujson"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/testutil/volume"
)

// account returns an OS account with its own home directory.
func account(t *testing.T) *ops.LocalClients {
	t.Helper()
	home, data := t.TempDir(), t.TempDir()
	return &ops.LocalClients{
		AccountClients: &permission.AccountClients{
			Env:   clients.Env{GOOS: "linux", Home: home, Getenv: func(string) string { return "" }},
			Tools: func() []permission.ProxyTool { return nil },
			Open:  func() (*clients.Journal, error) { return clients.OpenJournal(filepath.Join(data, "client_changes")) },
		},
		Endpoint: func() ops.ProxyEndpoint {
			return ops.ProxyEndpoint{Base: "http://127.0.0.1:8080", Command: "/usr/bin/mcpproxy", Profiles: []string{"research"}}
		},
		Run: func(context.Context, []string) (string, error) { panic("there is no program to run") },
	}
}

// variant is a form of a client's file as found on users' machines. text converts a plain file, which contains the
// server "other", to that form.
type variant struct {
	name    string
	text    func(string, textedit.Format) string
	mode    os.FileMode
	link    string // target of a symbolic link: "inside" or "outside" the home directory
	refused bool
}

func plain(s string, _ textedit.Format) string { return s }

// only returns a conversion that applies f to JSON files and does not change other files.
func only(f func(string) string) func(string, textedit.Format) string {
	return func(s string, format textedit.Format) string {
		if format == textedit.JSON {
			return f(s)
		}
		return s
	}
}

// commented adds comments before and after the text.
func commented(s string, f textedit.Format) string {
	mark := map[textedit.Format]string{textedit.JSON: "//", textedit.TOML: "#", textedit.YAML: "#"}[f]
	return mark + " mine, and I want to keep it: \"mcpproxy\": {\n" + s + mark + " the end\n"
}

// tooLarge is the name of the variant whose file exceeds the size limit.
const tooLarge = "too large"

var variants = []variant{
	{name: "plain", text: plain},
	{name: "comments", text: commented},
	{name: "CRLF", text: func(s string, _ textedit.Format) string { return strings.ReplaceAll(s, "\n", "\r\n") }},
	{name: "BOM", text: func(s string, f textedit.Format) string { return "\ufeff" + s }},
	{name: "no end of line", text: func(s string, _ textedit.Format) string { return strings.TrimRight(s, "\n") }},
	{name: "trailing commas", text: only(func(s string) string { return strings.ReplaceAll(s, "}\n}", "},\n}") })},
	{name: "tabs", text: only(func(s string) string { return strings.ReplaceAll(s, "  ", "\t") })},
	{name: "one line", text: only(func(s string) string { return strings.Join(strings.Fields(s), " ") })},
	{name: "empty", text: func(string, textedit.Format) string { return "" }},
	{name: "only spaces", text: func(string, textedit.Format) string { return "\n\n" }},
	{name: "other writing", text: func(s string, _ textedit.Format) string { return strings.ReplaceAll(s, `"other"`, `"名前-é"`) }},
	{name: "huge", text: func(s string, f textedit.Format) string {
		switch f {
		case textedit.JSON:
			return strings.Replace(s, "{", "{\n  \"big\": \""+strings.Repeat("x", volume.FullOrQuick(1<<20, 64<<10))+"\",", 1)
		case textedit.TOML:
			return "big = \"" + strings.Repeat("x", volume.FullOrQuick(1<<20, 64<<10)) + "\"\n" + s
		}
		return "big: " + strings.Repeat("x", volume.FullOrQuick(200<<10, 64<<10)) + "\n" + s
	}},
	{name: "a link", text: plain, link: "inside"},
	{name: "mode 0640", text: plain, mode: 0o640},
	{name: "read-only", text: plain, mode: 0o400, refused: true},
	{name: "a link to elsewhere", text: plain, link: "outside", refused: true},
	{name: "broken", text: func(s string, f textedit.Format) string {
		return s + map[textedit.Format]string{textedit.JSON: "}}", textedit.TOML: "[[[", textedit.YAML: "\n\t: [}"}[f]
	}, refused: true},
	{name: "no object", text: func(s string, f textedit.Format) string {
		return map[textedit.Format]string{textedit.JSON: "[1, 2]", textedit.TOML: "mcp_servers = 7\n", textedit.YAML: "- a\n- b\n"}[f]
	}, refused: true},
	{name: tooLarge, text: func(s string, _ textedit.Format) string { return s + strings.Repeat("\n", 17<<20) }, refused: true},
}

// TestCorpus checks files in all variants. Connecting changes only the entry, or rejects the file. Undo restores the
// file byte for byte.
func TestCorpus(t *testing.T) {
	files := 0
	large := map[textedit.Format]bool{}
	for _, c := range clients.AllClients() {
		for _, v := range variants {
			files++
			if testing.Short() && c.ID != "claude-code" && v.name != "plain" {
				continue
			}
			if v.name == tooLarge && !volume.IsFull() {
				format := c.TargetFile(account(t).Env).Format
				if large[format] {
					continue // one file per format is enough
				}
				large[format] = true
			}
			t.Run(c.ID+"/"+v.name, func(t *testing.T) {
				t.Parallel()
				held(t, c, v)
			})
		}
	}
	if files < 200 {
		t.Errorf("only %d files", files)
	}
}

// base returns a plain file of the client with one server.
func base(t *testing.T, f clients.File) string {
	t.Helper()
	text, err := textedit.SetValue(nil, f.Format, json.RawMessage(`{"command": "npx", "args": ["-y", "other"]}`), append(append([]string{}, f.Key...), "other")...)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func held(t *testing.T, c clients.Client, v variant) {
	a := account(t)
	target := c.TargetFile(a.Env)
	before := v.text(base(t, target), target.Format)
	mode := v.mode
	if mode == 0 {
		mode = 0o600
	}
	where := target.Path
	switch v.link {
	case "inside":
		where = a.Env.HomePath("dotfiles", "file")
	case "outside":
		where = filepath.Join(t.TempDir(), "file")
	}
	for _, dir := range []string{filepath.Dir(target.Path), filepath.Dir(where)} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(where, []byte(before), mode); err != nil {
		t.Fatal(err)
	}
	if where != target.Path {
		if err := os.Symlink(where, target.Path); err != nil {
			t.Fatal(err)
		}
	}
	plan, err := a.PlanConnect(c.ID, ops.ConnectOptions{Surface: "search"})
	if err == nil {
		_, err = a.ApplyPlan(t.Context(), ops.Caller{}, plan)
	}
	if v.refused {
		same(t, where, before, mode)
		if err == nil {
			t.Error("the file was not rejected")
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	after := read(t, target.Path)
	onlyEntry(t, target, before, after)
	contiguous(t, before, after)
	if info, err := os.Lstat(target.Path); err != nil || (info.Mode()&os.ModeSymlink != 0) != (v.link != "") {
		t.Errorf("the link: %v, %v", info, err)
	}
	if info, err := os.Stat(where); err != nil || info.Mode().Perm() != mode {
		t.Errorf("the mode: %v, %v", info, err)
	}
	if again, err := a.PlanConnect(c.ID, ops.ConnectOptions{Surface: "search"}); err != nil || again.Changed {
		t.Errorf("connecting again changes %q, %v", again.Difference, err)
	}
	plan, err = a.PlanDisconnect(c.ID)
	if err == nil {
		_, err = a.ApplyPlan(t.Context(), ops.Caller{}, plan)
	}
	if err != nil {
		t.Fatalf("disconnect: %v", err)
	}
	without := read(t, target.Path)
	onlyEntry(t, target, without, after)
	contiguous(t, without, after)
	for _, was := range []string{after, before} {
		if _, err := a.UndoLastConnect(c.ID); err != nil || read(t, target.Path) != was {
			t.Fatalf("the undo did not restore the file: %v", err)
		}
	}
	connected(t, a, c.ID, ops.ConnectOptions{Surface: "lanes"})
	if _, err := a.UndoLastConnect(c.ID); err != nil {
		t.Errorf("undo of lanes: %v", err)
	}
	same(t, where, before, mode)
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func same(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if read(t, path) != text {
		t.Error("the file has changed")
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
		t.Errorf("the mode is %v, %v", info.Mode(), err)
	}
}

// meaning parses a text with a parser that MCPProxy does not use for edits.
func meaning(t *testing.T, f textedit.Format, text string) map[string]any {
	t.Helper()
	raw := bytes.TrimPrefix([]byte(text), []byte("\ufeff"))
	said := map[string]any{}
	var err error
	switch f {
	case textedit.JSON:
		if len(bytes.TrimSpace(raw)) > 0 {
			if raw, err = hujson.Standardize(raw); err == nil {
				err = json.Unmarshal(raw, &said)
			}
		}
	case textedit.TOML:
		err = toml.Unmarshal(raw, &said)
	case textedit.YAML:
		err = yaml.Unmarshal(raw, &said)
	}
	if said == nil { // an empty YAML document
		said = map[string]any{}
	}
	if err != nil {
		t.Fatalf("%v in\n%.500s", err, text)
	}
	return said
}

// onlyEntry checks that the parsed texts differ only by the entry.
func onlyEntry(t *testing.T, f clients.File, before, after string) {
	t.Helper()
	was, is := meaning(t, f.Format, before), meaning(t, f.Format, after)
	servers, _ := is[f.Key[0]].(map[string]any)
	if _, there := servers[clients.DefaultServerName].(map[string]any); !there {
		t.Fatalf("the entry is missing in\n%.500s", after)
	}
	delete(servers, clients.DefaultServerName)
	if _, there := was[f.Key[0]]; !there {
		delete(is, f.Key[0])
	}
	if !reflect.DeepEqual(was, is) {
		t.Errorf("the file differs by more than the entry:\n%.500s", after)
	}
}

// contiguous checks that after contains all of before, with insertions in one place only.
func contiguous(t *testing.T, before, after string) {
	t.Helper()
	head := 0
	for head < min(len(before), len(after)) && before[head] == after[head] {
		head++
	}
	tail := 0
	for tail < min(len(before), len(after))-head && before[len(before)-1-tail] == after[len(after)-1-tail] {
		tail++
	}
	if lost := strings.TrimSpace(before[head : len(before)-tail]); lost != "" && lost != "{}" { // an empty object in YAML
		t.Errorf("%q is missing in\n%.500s", lost, after)
	}
}
