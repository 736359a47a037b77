package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"charm.land/lipgloss/v2"
	"github.com/spf13/cobra"

	"mcpproxy/internal/app/autostart"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/volume"
)

// Columns shrink in the declared order, and only as far as needed. A line that is still too wide is cut. Wide
// characters count as two cells.
func TestTableColumnsShrinkInOrder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		width int
		want  string
		notes int
	}{
		{0, "TOOL    LANE             AGE  DESCRIPTION\n日本語  call_tool_write    1  List the titles\n", 0},
		{43, "TOOL    LANE             AGE  DESCRIPTION\n日本語  call_tool_write    1  List the tit…\n", 0},
		{41, "TOOL    LANE   AGE  DESCRIPTION\n日本語  write    1  List the titles\n", 0},
		{28, "TOOL    LANE   DESCRIPTION\n日本語  write  List the tit…\n", 0},
		{30, "TOOL    LANE   DESCRIPTION\n日本語  write  List the titles\n", 0},
		{20, "TOOL    LANE\n日本語  write\n", 1},
		{12, "TOOL   LANE\n日本…  write\n", 1},
		{8, "TOOL  L…\n日…   w…\n", 1},
	} {
		var out strings.Builder
		var notes []string
		tab := table{p: &printer{Writer: &out, width: c.width, notes: &notes}, header: []string{"TOOL", "LANE", "AGE", "DESCRIPTION", "EMPTY"}, rightAligned: map[int]bool{2: true},
			narrowingSteps: slices.Concat(columnTruncationStep("DESCRIPTION", 13), columnAbbreviationStep("LANE", laneOfVariant), columnHidingSteps("AGE"), columnTruncationStep("DESCRIPTION", 5), addNoteToSteps("left out", columnHidingSteps("DESCRIPTION")), columnTruncationStep("TOOL", 2))}
		tab.addRow("日本語", "call_tool_write", "1", "List the titles", "")
		tab.write()
		if out.String() != c.want || len(notes) != c.notes {
			t.Errorf("%d columns: %q, want %q; notes: %q", c.width, out.String(), c.want, notes)
		}
	}
}

// Fields wrap between words. Texts that users copy are not wrapped.
func TestFieldsFoldAtWords(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	f := fieldList{}
	f.add("Detail", "exit status 1: no such file; see `mcpproxy upstream logs notes`")
	f.add("URL", "https://example.com/a/very/long/path")
	f.add("语言", "两个\nwords of text")
	f.write(&printer{Writer: &out, width: 30})
	want := "Detail  exit status 1: no such\n        file; see\n        `mcpproxy upstream logs notes`\n" +
		"URL     https://example.com/a/very/long/path\n语言    两个\n        words of text\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// COLUMNS sets the maximum width of lines, even without a terminal. Without COLUMNS and a terminal, nothing is cut.
func TestWidth(t *testing.T) {
	t.Parallel()
	for set, want := range map[string]int{"": 0, "60": 60, "x": 0, "-3": 0, "0": 0} {
		if r := newInvocation(Deps{Stdout: &bytes.Buffer{}, Getenv: func(string) string { return set }}); r.width != want {
			t.Errorf("COLUMNS=%q: %d", set, r.width)
		}
	}
}

// commandLines contains a command line for each command whose output is wrapped. table reports whether the output is a
// table. In other output, a word may be wider than the line.
var commandLines = map[string]struct {
	line  string
	table bool
}{
	"activity list": {"activity list", true}, "activity show": {"activity show 01JG2K4", false}, "activity verify": {"activity verify", false}, "activity summary": {"activity summary", true}, "activity redact": {"activity redact 01JG2K4 --field arguments --yes", false},
	"approvals list":  {"approvals list", true},
	"config validate": {"config validate", false}, "secrets list": {"secrets list", true},
	"secrets delete": {"secrets delete GITHUB_TOKEN --yes", false}, "status": {"status", false}, "tools list": {"tools list", true},
	"service install": {"service install", false}, "service status": {"service status", false}, "service uninstall": {"service uninstall", false},
	"tools search": {"tools search create issue --explain", true}, "tools show": {"tools show github:delete_repo", false},
	"tools stats": {"tools stats", true}, "tools diff": {"tools diff github:changed", false}, "tools approve": {"tools approve --server github --all --yes", true},
	"tools block": {"tools block github:changed", false}, "tools unblock": {"tools unblock github:changed", false}, "tools enable": {"tools enable github:delete_repo", false}, "tools disable": {"tools disable github:delete_repo", false}, "tools set": {"tools set github:delete_repo --alias new_bug", false},
	"upstream list": {"upstream list", true}, "upstream get": {"upstream get notes", false}, "upstream review": {"upstream review old", false},
	"upstream approve": {"upstream approve old --fingerprint " + printOfTools, false}, "upstream add": {"upstream add x --quarantined -- sh", false},
	"upstream import": {"upstream import --dry-run", false},
	"upstream set":    {"upstream set github trust auto", false}, "upstream enable": {"upstream enable github", false}, "upstream disable": {"upstream disable github", false},
	"upstream restart": {"upstream restart github", false}, "upstream remove": {"upstream remove github --yes", false},
	"upstream quarantine": {"upstream quarantine github", false}, "upstream logout": {"upstream logout github", false},
	"token list": {"token list", true}, "token revoke": {"token revoke ci", false}, "profile list": {"profile list", true}, "clients list": {"clients list --all", true}, "notify test": {"notify test", true},
	"upstream outdated": {"upstream outdated", true}, "upstream update": {"upstream update notes --yes", false}, "upstream rollback": {"upstream rollback notes --yes", false},
	"registry search": {"registry search notes", true}, "registry show": {"registry show a/notes", false},
	"pause": {"pause --reason why", false}, "resume": {"resume", false},
	"pending list": {"pending list", true}, "pending show": {"pending show k8", false}, "pending approve": {"pending approve k8 --yes", false}, "pending deny": {"pending deny k8 --yes", false},
	"lease list": {"lease list", true}, "lease grant": {"lease grant github --yes", false}, "lease revoke": {"lease revoke l1abcdefghijklmn", false},
	"presence join": {"presence join", false}, "presence reset": {"presence reset --yes", false},
	"policy try": {"policy try commands.md", true}, "can": {"can claude-code github:delete_repo", false},
}

// notWrappedCommands are the commands that do not end, and those whose output must not be wrapped, such as texts of
// servers and files, addresses and scripts.
var notWrappedCommands = []string{
	"activity export", "activity watch", "call tool-destructive", "call tool-read", "call tool-write", "completion", "config confirm", "config path", "config show", "connect", "demo", "disconnect", "doctor", "help", "login", "permissions", "presence set", "presence test", "profile show", "sandbox suggest", "secrets set", "serve", "stdio",
	"token create", "ui",
	"upstream login", "upstream logs", "version",
}

// No line of a command is wider than the terminal, however long the names are.
func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	volume.SkipUnderRace(t)
	t.Parallel()
	w := newEnvWithWrappedDaemon(t, &fakeOperations{}, withLongTexts)
	w.deps.Program, w.deps.Manager = "/usr/bin/mcpproxy", &fakeManager{state: autostart.ServiceState{Installed: true, File: strings.Repeat("/directory", 20), Detail: strings.Repeat("word ", 30)}}
	for _, path := range leafCommandPaths((&invocation{Deps: Deps{}}).newRootCommand()) {
		c, ok := commandLines[path]
		if !ok {
			if !slices.Contains(notWrappedCommands, path) {
				t.Errorf("mcpproxy %s: add the command to commandLines or to notWrappedCommands", path)
			}
			continue
		}
		for _, width := range []int{80, 60} {
			w.env["COLUMNS"] = strconv.Itoa(width)
			got := w.runCommand(strings.Fields(c.line)...)
			if got.code != problem.ExitDone {
				t.Errorf("%s: %+v", c.line, got)
			}
			for line := range strings.Lines(got.stdout + got.stderr) {
				line = strings.TrimRight(line, "\n")
				words := splitUnbreakableWords(strings.TrimLeft(line, " "))
				whole := len(words) == 1 || !c.table && lipgloss.Width(words[len(words)-1]) > width/2
				if lipgloss.Width(line) > width && !whole {
					t.Errorf("%s: %d cells of %d: %s", c.line, lipgloss.Width(line), width, line)
				}
			}
		}
	}
}

// leafCommandPaths returns the paths of the commands without subcommands, without the name of the program.
func leafCommandPaths(parent *cobra.Command) (paths []string) {
	for _, c := range parent.Commands() {
		if c.HasSubCommands() {
			paths = append(paths, leafCommandPaths(c)...)
		} else {
			_, path, _ := strings.Cut(c.CommandPath(), " ")
			paths = append(paths, path)
		}
	}
	return paths
}

// withLongTexts wraps h and makes the names and texts in its responses long.
func withLongTexts(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &responseRecorder{header: http.Header{}}
		h.ServeHTTP(answer, r)
		decoded := json.NewDecoder(&answer.body)
		decoded.UseNumber()
		var v any
		if err := decoded.Decode(&v); err != nil {
			panic(fmt.Sprintf("%s %s answered %v", r.Method, r.URL, err))
		}
		raw, err := json.Marshal(lengthenTexts("", v))
		if err != nil {
			panic(err)
		}
		w.Header().Set("Content-Type", answer.header.Get("Content-Type"))
		w.WriteHeader(answer.code)
		_, _ = w.Write(raw)
	})
}

type responseRecorder struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (k *responseRecorder) Header() http.Header { return k.header }

func (k *responseRecorder) WriteHeader(code int) { k.code = code }

func (k *responseRecorder) Write(p []byte) (int, error) {
	if k.code == 0 {
		k.code = http.StatusOK
	}
	return k.body.Write(p)
}

// lengthenTexts makes the texts of a response long. It does not change definitions, which commands show literally, and
// enumerated values.
func lengthenTexts(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if !slices.Contains([]string{"definition", "changes", "arguments", "response", "inputSchema", "annotations"}, name) {
				v[name] = lengthenTexts(name, member)
			}
		}
	case []any:
		for i := range v {
			v[i] = lengthenTexts(name, v[i])
		}
	case string:
		switch name {
		case "name", "server", "tool", "server_name", "tool_name":
			return v + "_的一个非常长的名字_that_goes_on_and_on_and_on_for_long"
		case "client_name", "detail", "description", "last_error", "error_message", "error", "message", "action", "warnings", "config_error", "proposed_by", "asked", "found":
			return v + strings.Repeat(" and 很长的 words", 12)
		}
	}
	return v
}

// The help of every command fits the width. Examples are not wrapped, so that users can copy them.
func TestHelpFitsTheTerminal(t *testing.T) {
	volume.SkipUnderRace(t)
	if testing.Short() {
		t.Skip("it renders the help of all commands in several widths")
	}
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	plain := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for _, path := range append(leafCommandPaths((&invocation{Deps: Deps{}}).newRootCommand()), "", "upstream", "tools") {
		asked := append(strings.Fields(path), "--help")
		delete(w.env, "COLUMNS")
		whole := w.runCommand(asked...).stdout
		for _, width := range []int{80, 60} {
			w.env["COLUMNS"] = strconv.Itoa(width)
			got := w.runCommand(asked...).stdout
			if plain(got) != plain(whole) {
				t.Errorf("%s at width %d: the words differ:\n%s", path, width, got)
			}
			examples := false
			for line := range strings.Lines(got) {
				line = strings.TrimRight(line, "\n")
				examples = line == "Examples:" || examples && line != ""
				words := splitUnbreakableWords(strings.TrimLeft(line, " "))
				if !examples && lipgloss.Width(line) > width && len(words) > 1 {
					t.Errorf("%s: %d cells of %d: %s", path, lipgloss.Width(line), width, line)
				}
			}
		}
	}
}
