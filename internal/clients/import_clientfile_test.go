package clients

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/config"
	"mcpproxy/internal/problem"
)

// parseServers parses the text of a client's file. The error is a *problem.Problem INVALID_CONFIG with line and column.
func parseServers(text []byte) (*ImportedServers, error) {
	text = bytes.TrimPrefix(text, []byte(textedit.ByteOrderMark))
	root, err := read(text)
	if err != nil {
		return nil, toParseProblem(err)
	}
	found, err := findServerSections(root)
	if err != nil {
		return nil, toParseProblem(err)
	}
	r := importReader{file: &ImportedServers{}, taken: UsedServerNames{}}
	for _, s := range found {
		r.file.Client = s.client
		if err := r.readSection(s); err != nil {
			return nil, toParseProblem(err)
		}
	}
	return r.file, nil
}

// read parses the text in the format that is detected.
func read(text []byte) (*node, error) {
	if wrong := textedit.CheckSizeAndEncoding(text); wrong != nil {
		line, column := textedit.LineAndColumn(text, wrong.Offset)
		return nil, &syntaxError{position{line, column}, wrong.Message, wrong.Hint}
	}
	switch detectFormat(text) {
	case inTOML:
		return parseTOML(text)
	case inYAML:
		return parseYAML(text)
	}
	return parseJSONOrYAML(text)
}

// updating reports whether golden files are written. The external tests define the flag.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// TestClients imports a file of each client and compares the result with a golden file. It also writes all servers of a
// file into an MCPProxy configuration file and opens that.
func TestClients(t *testing.T) {
	files, err := filepath.Glob("testdata/clients/*")
	if err != nil || len(files) < 20 {
		t.Fatalf("got only %d samples, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			f, err := parseServers(data)
			if err != nil {
				t.Fatal(err)
			}
			got := report(t, f)
			golden := filepath.Join("testdata", "golden", filepath.Base(file)+".txt")
			if updating() {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, n := range allNotes(f) {
				if strings.Contains(n.Message+n.Hint, "s3cret") {
					t.Errorf("a note contains a secret: %v", n)
				}
			}
			accepted(t, f)
		})
	}
}

func allNotes(f *ImportedServers) []Note {
	notes := f.Notes
	for _, s := range f.Servers {
		notes = append(notes, s.Notes...)
	}
	return notes
}

// report returns the result of an import as text for a golden file.
func report(t *testing.T, f *ImportedServers) string {
	var out strings.Builder
	notes := func(list []Note) {
		for _, n := range list {
			fmt.Fprintf(&out, "  %d:%d %s: %s", n.Line, n.Column, n.Key, n.Message)
			if n.Hint != "" {
				fmt.Fprintf(&out, " (%s)", n.Hint)
			}
			out.WriteByte('\n')
		}
	}
	fmt.Fprintf(&out, "client: %s\n", f.Client)
	for _, s := range f.Servers {
		fmt.Fprintf(&out, "%s %s\n", s.Name, encoded(t, s))
		notes(s.Notes)
	}
	out.WriteString("the file:\n")
	notes(f.Notes)
	return out.String()
}

func encoded(t testing.TB, s ImportedServer) json.RawMessage {
	t.Helper()
	raw, err := s.Entry.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// accepted writes the servers into an MCPProxy configuration file and opens it.
func accepted(t testing.TB, f *ImportedServers) {
	t.Helper()
	var text bytes.Buffer
	text.WriteString(`{"mcpServers": {`)
	for _, s := range f.Servers {
		name, err := json.Marshal(s.Name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s: %s,\n", name, encoded(t, s))
	}
	text.WriteString("}}")
	path := filepath.Join(t.TempDir(), config.FileName)
	if err := os.WriteFile(path, text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	lookup := func(name string) (string, bool) {
		return "/home/me", name != config.EnvDataDir && name != config.EnvPath
	}
	live, err := config.OpenLiveConfig(path, config.Options{Lookup: lookup})
	if err != nil {
		t.Fatalf("the configuration file is rejected: %v\n%s", err, text.Bytes())
	}
	if got := len(live.Current().Servers); got != len(f.Servers) {
		t.Errorf("got %d of %d servers in the configuration file", got, len(f.Servers))
	}
}

// TestUnreadable checks that a text that is no client's file is rejected with the position of the error.
func TestUnreadable(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":             {"", "line 1, column 1: the file is empty"},
		"not UTF-8":         {"{\"mcpServers\": {\"\xff\": {}}}", "line 1, column 18: the file is not valid UTF-8"},
		"no object":         {"[1]", "line 1, column 1: the text contains no servers"},
		"no servers":        {"{\n}", "line 1, column 1: the text contains no servers"},
		"prose":             {"hello", "line 1, column 1: invalid value hello"},
		"twice":             {"{\"mcpServers\": {\n\"a\": {},\n\"a\": {}}}", "line 3, column 1: \"a\" is there twice"},
		"JSON syntax":       {"{\"mcpServers\": {\"a\": {]}}", "line 1, column 23: invalid character ']' at start of value"},
		"JSON deep":         {`{"mcpServers": ` + strings.Repeat("[", 100), "line 1, column 47: brackets are nested deeper than 32"},
		"too many":          {many(maxServers + 1), "line 258, column 2: there are more than 256 servers"},
		"TOML syntax":       {"[mcp_servers.a]\ncommand = x", "line 2, column 11: the text is not TOML"},
		"TOML twice":        {"[mcp_servers.a]\ncommand = \"x\"\ncommand = \"y\"", "line 3, column 1: the text is not TOML"},
		"TOML deep":         {"a = " + strings.Repeat("[", 100), "line 1, column 37: the text is nested deeper than 32"},
		"TOML many":         {numberedLines("a%d = 1\n", maxKeys+1), "line 10001, column 1: there are more than 10000 keys"},
		"TOML dots":         {strings.Repeat("a.", 100) + "b = 1", "line 1, column 65: the text is nested deeper than 32"},
		"YAML syntax":       {"extensions:\n  a: b: c", "line 2, column 6: the text is not YAML"},
		"YAML twice":        {"extensions:\n  a: {cmd: x}\n  a: {cmd: x}", "line 3, column 3: the text is not YAML: mapping key \"a\" already defined"},
		"YAML deep":         {"a: " + strings.Repeat("[", 100), "line 1, column 36: the text is nested deeper than 32"},
		"YAML dashes":       {"a:\n" + strings.Repeat("- ", 1000) + "b", "line 2, column 101: the line is indented by more than 100 characters"},
		"YAML laughs":       {laughs(12), "line 4, column 45: aliases repeat more than 10000 values"},
		"YAML aliases deep": {nestedAliases(40), "line 30, column 12: the text is nested deeper than 32"},
		"YAML no anchor":    {"extensions:\n  a: *b", "line 2, column 6: no anchor above this line has the name \"b\""},
		"YAML itself":       {"extensions: &e\n  a: {cmd: x, b: *e}", "line 2, column 18: no anchor above this line has the name \"e\""},
		"YAML merge":        {"a: &a x\nextensions:\n  b:\n    <<: *a", "line 4, column 5: the merge key (<<) names something that is not an object"},
		"JSON and not YAML": {"{\"mcpServers\": {\"a\": {\"command\": \"x\"}", "line 1, column 38: the file ends too early"},
		"JSON no comma":     {"{\"mcpServers\": {\"a\": {\"command\": \"x\" \"args\": []}}}", "line 1, column 38: invalid character"},
		"YAML documents":    {"a: 1\n---\nb: 2", "line 1, column 1: the text has 2 YAML documents"},
		"YAML large":        {"a: 1\n" + strings.Repeat(" ", maxYAML), "line 1, column 1: the text is larger than 262144 bytes"},
		"a server is not":   {`{"mcpServers": "x"}`, "line 1, column 1: the text contains no servers"},
		"YAML only comment": {"---\n# nothing", "line 1, column 1: the text has 0 YAML documents"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseServers([]byte(c.text))
			p := problem.From(err)
			if err == nil || p.Code != problem.InvalidConfig || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// many returns a text with n servers, one on each line.
func many(n int) string {
	var out strings.Builder
	out.WriteString(`{"mcpServers": {`)
	for i := range n {
		fmt.Fprintf(&out, "\n \"s%d\": {\"command\": \"x\"},", i)
	}
	return out.String() + "}}"
}

// TestLeftOut checks that an unusable server is left out with a note, and that the others are imported.
func TestLeftOut(t *testing.T) {
	f, err := parseServers([]byte("\uFEFF" + `{"mcpServers": {
		"both": {"command": "x", "url": "https://x.example"},
		"neither": {},
		"text": "x",
		"address": {"url": "ws://x.example"},
		"header": {"url": "https://x.example", "headers": {"A": "s3cret\nB: c"}},
		"env": {"command": "x", "env": {"A=B": "c"}},
		"tools": {"command": "x", "disabledTools": "delete"},
		"off": {"command": "x", "disabled": "yes"},
		"pattern": {"command": "x", "includeTools": ["get_*"], "excludeTools": ["get_all"]},
		"lists": {"command": "x", "includeTools": ["a"], "tools": ["a", "b"]},
		"keyring": {"command": "x", "args": ["${keyring:A}"]},
		"good": {"command": "x", "args": [1, true], "args2": []},
	}}`))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Servers) != 2 || f.Servers[0].Name != "keyring" || f.Servers[1].Name != "good" || len(f.Notes) != 10 {
		t.Errorf("got\n%s", report(t, f))
	}
	for _, n := range f.Notes {
		if n.Line == 0 || !strings.Contains(n.Message, "is left out: ") || strings.Contains(n.Message, "s3cret") {
			t.Errorf("got %+v", n)
		}
	}
}

// TestNarrowing checks that every restriction in a client's file also applies after the import.
func TestNarrowing(t *testing.T) {
	for entry, want := range map[string]string{
		`"enabled": true, "disabled": true`:                        `{"command":"x","enabled":false}`,
		`"disabled": true, "enabled": true`:                        `{"command":"x","enabled":false}`,
		`"disabledTools": ["a"], "excludeTools": ["b"]`:            `{"command":"x","disabled_tools":["a","b"]}`,
		`"tools": ["a", "b"], "disabled_tools": ["b"]`:             `{"command":"x","enabled_tools":["a"]}`,
		`"tools": ["a"], "disabled_tools": ["a"]`:                  `{"command":"x","enabled":false}`,
		`"tools": ["*"], "disabled_tools": ["a"]`:                  `{"command":"x","disabled_tools":["a"]}`,
		`"trust": "auto", "autoApprove": ["*"]`:                    `{"command":"x"}`,
		`"trust": "manual", "quarantined": true`:                   `{"command":"x","quarantined":true,"trust":"manual"}`,
		`"quarantined": false, "hint_overrides": {"*": {}}`:        `{"command":"x"}`,
		`"disabled": null, "tools": null, "unheard-of": {"a": []}`: `{"command":"x"}`,
	} {
		f, err := parseServers([]byte(`{"mcpServers": {"a": {"command": "x", ` + entry + `}}}`))
		if err != nil || len(f.Servers) != 1 {
			t.Errorf("%s: %v", entry, err)
			continue
		}
		if got := string(encoded(t, f.Servers[0])); got != want {
			t.Errorf("%s: got %s, want %s", entry, got, want)
		}
	}
}

func numberedLines(format string, n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, format, i)
	}
	return out.String()
}

// TestManyNotes checks that the number of notes for a file of another kind is limited.
func TestManyNotes(t *testing.T) {
	var text strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&text, `"k%d": 1,`, i)
	}
	f, err := parseServers([]byte(`{"mcpServers": {"a": {"command": "x", ` + text.String() + `}}}`))
	if err != nil || len(f.Servers[0].Notes) != maxNotes || f.OmittedNotes != 50_000-maxNotes {
		t.Errorf("error %v, %d omitted notes", err, f.OmittedNotes)
	}
}

func TestNames(t *testing.T) {
	for called, want := range map[string]string{
		"github": "github", "My Notes": "My-Notes", "a:b": "a-b", "a__b": "a_b", "a___b": "a_b", " x ": "x", "..": "server", "": "server",
		"日本": "server", "@scope/name": "scope-name", "a.b": "a.b", strings.Repeat("x", 100): strings.Repeat("x", 64),
	} {
		if got := toValidServerName(called); got != want {
			t.Errorf("%q becomes %q, want %q", called, got, want)
		}
	}
	f, err := parseServers([]byte(`{"mcpServers": {"a b": {"command": "x"}, "a-b": {"command": "x"}, "A-B": {"command": "x"}, "m1": {"command": "x"}, "ml": {"command": "x"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range f.Servers {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"a-b", "a-b-2", "A-B-3", "m1", "ml-2"}, names); diff != "" {
		t.Error(diff)
	}
	accepted(t, f)
}

// FuzzParse checks that no text causes a panic, and that every result can be used.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/clients/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add("a: &a [*a]")
	f.Add("[a]\n[a.b]\n[[a.c]]\nd.e = {f = [1, {g = 2020-01-01}]}")
	f.Add("? a\n: - b\n  - !!str c\n  - |\n    d")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseServers([]byte(text))
		if err != nil {
			if p := problem.From(err); p.Code != problem.InvalidConfig || p.Hint == "" {
				t.Errorf("got %v (%s)", err, p.Hint)
			}
			return
		}
		taken := map[string]bool{}
		for _, s := range parsed.Servers {
			if err := tool.CheckServerName(s.Name); err != nil || taken[s.Name] {
				t.Errorf("the name %q: %v", s.Name, err)
			}
			taken[s.Name] = true
			if m := config.CheckServerEntry(s.Name, encoded(t, s)); len(m) > 0 {
				t.Errorf("%s: got %v", s.Name, m)
			}
			if s.Entry.Trust == config.TrustAuto || s.Entry.Trust == config.TrustScan {
				t.Errorf("%s is trusted", s.Name)
			}
		}
	})
}

// laughs returns a text in which each line expands to ten times the size of the previous line.
func laughs(n int) string {
	text := "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
	for i := range n {
		text += fmt.Sprintf("a%d: &a%d [%s*a%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*a%d, ", i), 9), i)
	}
	return text + "extensions: {}\n"
}

// nestedAliases returns a text in which each line is nested one level deeper than the previous line.
func nestedAliases(n int) string {
	text := "a0: &a0 [x]\n"
	for i := range n {
		text += fmt.Sprintf("a%d: &a%d [*a%d]\n", i+1, i+1, i)
	}
	return text + "extensions: {}\n"
}

// TestSpellings checks special syntax of YAML, Continue and shell-style defaults.
func TestSpellings(t *testing.T) {
	const npx = `a {"command":"npx","args":["-y","foo"]}`
	for name, c := range map[string]struct{ text, want string }{
		"merge key":           {"base: &base\n  command: npx\n  args: [-y, foo]\nmcpServers:\n  a:\n    <<: *base\n", npx},
		"merge, own first":    {"base: &base {command: uvx, args: [-y, foo]}\nmcpServers:\n  a:\n    <<: *base\n    command: npx\n", npx},
		"merge, own later":    {"base: &base {command: uvx, args: [-y, foo]}\nmcpServers:\n  a:\n    command: npx\n    <<: *base\n", npx},
		"merge of a list":     {"x: &x {command: npx}\ny: &y {command: uvx, args: [-y, foo]}\nmcpServers:\n  a:\n    <<: [*x, *y]\n", npx},
		"alias":               {"x: &x [-y, foo]\nmcpServers:\n  a: {command: npx, args: *x}\n", npx},
		"an alias of server":  {"x: &x {command: npx, args: [-y, foo]}\nmcpServers:\n  a: *x\n", npx},
		"flow YAML":           {"{mcpServers: {a: {command: npx, args: [-y, foo]}}}", npx},
		"flow YAML, lines":    {"{\n  mcpServers: {\n    a: {command: npx, args: [-y, foo]}\n  }\n}\n", npx},
		"quoted key":          {"\"mcpServers\":\n  \"a\":\n    command: npx\n    args: [-y, foo]\n", npx},
		"default of a URL":    {`{"mcpServers": {"a": {"url": "${API_URL:-https://api.example/mcp}"}}}`, `a {"url":"https://api.example/mcp"}`},
		"default in a text":   {`{"mcpServers": {"a": {"command": "x", "args": ["--url=${U:-https://u.example:80/}", "${V-w}"], "env": {"E": "${F:-}"}}}}`, `a {"command":"x","args":["--url=https://u.example:80/","w"],"env":{"E":""}}`},
		"default in default":  {`{"mcpServers": {"a": {"url": "${A:-${B:-https://b.example}}/mcp"}}}`, `a {"url":"https://b.example/mcp"}`},
		"variable in default": {`{"mcpServers": {"a": {"command": "x", "args": ["${A:-${HOST}/x}/y"]}}}`, `a {"command":"x","args":["${env:HOST}/x/y"]}`},
		"default for a shell": {`{"mcpServers": {"a": {"command": "sh", "args": ["-c", "x ${Y:-z}"]}}}`, `a {"command":"sh","args":["-c","x ${Y:-z}"]}`},
		"Continue, secrets":   {"mcpServers:\n  - name: a\n    command: x\n    env: {K: \"${{ secrets.K }}\", L: \"${{ inputs.org/x/L }}\"}\n", `a {"command":"x","env":{"K":"${env:K}","L":"${env:L}"}}`},
		"Continue, JSON":      {`{"experimental": {"modelContextProtocolServers": [{"transport": {"type": "stdio", "command": "uvx", "args": ["mcp-server-sqlite"]}}]}}`, `sqlite {"command":"uvx","args":["mcp-server-sqlite"],"protocol":"stdio"}`},
	} {
		t.Run(name, func(t *testing.T) {
			f, _, err := ParsePasted([]byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			if len(f.Servers) != 1 {
				t.Fatal(report(t, f))
			}
			if got := f.Servers[0].Name + " " + string(encoded(t, f.Servers[0])); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			accepted(t, f)
		})
	}
}
