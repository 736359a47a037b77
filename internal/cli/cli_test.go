package cli

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/app"
	"mcpproxy/internal/demo"
	"mcpproxy/internal/problem"
)

func TestTables(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	for name, line := range map[string]string{
		"status":            "status",
		"upstream-list":     "upstream list",
		"upstream-get":      "upstream get github",
		"upstream-get-bad":  "upstream get notes",
		"upstream-restart":  "upstream restart github",
		"upstream-logs":     "upstream logs github --lines 2",
		"tools-list":        "tools list",
		"tools-search":      "tools search create issue --limit 2",
		"tools-explain":     "tools search create issue --limit 2 --explain",
		"tools-stats":       "tools stats --since 2026-01-10",
		"tools-show":        "tools show github:create_issue",
		"tools-show-locked": "tools show github:delete_repo",
		"activity-list":     "activity list",
		"activity-plain":    "activity list --no-icons",
		"activity-page":     "activity list --limit 2",
		"activity-show":     "activity show 01JG2K4",
		"activity-refusal":  "activity show 01JG2K2ZZZ…",
		"activity-json":     "activity list --limit 1 -o json",
		"activity-yaml":     "activity list --limit 1 -o yaml",
		"version":           "version -o json",
	} {
		got := w.runCommand(strings.Fields(line)...)
		if got.code != 0 {
			t.Errorf("%s: exit code %d, %s", line, got.code, got.stderr)
		}
		if name == "version" {
			continue
		}
		compareWithGolden(t, name, got.stdout+stderrSection(got.stderr))
		if strings.ContainsAny(got.stdout+got.stderr, "\x1b\u202e\a") {
			t.Errorf("%s: the output contains terminal control sequences", line)
		}
	}
}

// No sign-in code is created if there is no UI to open or no terminal to show the link on.
func TestUICannotBeOpened(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	if got := w.runCommand("ui"); got.code != problem.ExitNotFound || got.stdout != "" || !strings.Contains(got.stderr, "no web UI") {
		t.Errorf("%+v", got)
	}
	if got := newTestEnv(t).runCommand("ui"); got.code != problem.ExitNoDaemon || !strings.Contains(got.stderr, "mcpproxy serve") {
		t.Errorf("%+v", got)
	}
}

// The login command shows the address, waits and reports the outcome.
func TestLogin(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	got := w.runCommand("upstream", "login", "github")
	if got.code != 0 || got.stdout != "https://as.example/authorize?state=x\nLogged in to github.\n" || !strings.Contains(got.stderr, "open this address") {
		t.Errorf("%+v", got)
	}
	got = w.runCommand("upstream", "login", "github", "-o", "json")
	if got.code != 0 || !strings.Contains(got.stdout, `"state": "done"`) || strings.Contains(got.stdout, "https://") || !strings.Contains(got.stderr, "https://as.example") {
		t.Errorf("%+v", got)
	}
	got = w.runCommand("upstream", "login", "notes")
	if got.code != problem.ExitLogin || !strings.Contains(got.stderr, "access_denied") {
		t.Errorf("%+v", got)
	}
	if got = w.runCommand("upstream", "logout", "github"); got.code != 0 || got.stdout != "Logged out of github.\n" {
		t.Errorf("%+v", got)
	}
	if got = w.runCommand("upstream", "login", "nobody"); got.code != problem.ExitNotFound {
		t.Errorf("%+v", got)
	}
}

// The restart command reports a failure in its output and in its exit code.
func TestFailedRestart(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	got := w.runCommand("upstream", "restart", "notes")
	if got.code != problem.ExitTryAgain || got.stdout != "Restarted notes, but it failed to start.\n" ||
		!strings.Contains(got.stderr, "exit status 1") || !strings.Contains(got.stderr, "upstream logs notes") || strings.Contains(got.stderr, "\x1b") {
		t.Errorf("%+v", got)
	}
	if got = w.runCommand("upstream", "restart", "推荐"); got.code != 0 || got.stdout != "Restarted 推荐: it is connecting.\n" {
		t.Errorf("%+v", got)
	}
}

func TestLogLinesBelowOne(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	for _, lines := range []string{"0", "-3"} {
		got := w.runCommand("upstream", "logs", "github", "--lines", lines)
		if got.code != problem.ExitUsage || got.stdout != "" || !strings.Contains(got.stderr, "--lines: must be at least 1") {
			t.Errorf("%+v", got)
		}
	}
}

// An error names the allowed range of a number or a duration, for every flag.
func TestFlagsOutOfBounds(t *testing.T) {
	t.Parallel()
	f := &fakeOperations{}
	w := newEnvWithDaemon(t, f)
	for line, says := range map[string]string{
		"activity list --limit 0":            "Invalid value '0' for --limit: must be at least 1 and at most 1000",
		"activity list --limit 1001":         "Invalid value '1001' for --limit: must be at least 1 and at most 1000",
		"activity list --limit ten":          "Invalid value 'ten' for --limit: must be at least 1 and at most 1000",
		"tools search x --limit 0":           "Invalid value '0' for --limit: must be at least 1 and at most 100",
		"upstream logs github -n 0":          "Invalid value '0' for --lines: must be at least 1 and at most 10000",
		"upstream logs github -n 10001":      "Invalid value '10001' for --lines: must be at least 1 and at most 10000",
		"call tool-read a:b --timeout 5":     "Invalid value '5' for --timeout: must be a duration longer than 0, such as 500ms, 30s, 2m or 1h",
		"call tool-read a:b --timeout 0":     "Invalid value '0' for --timeout: must be a duration",
		"call tool-read a:b --timeout -3s":   "Invalid value '-3s' for --timeout: must be a duration",
		"call tool-read a:b --timeout 2days": "Invalid value '2days' for --timeout: must be a duration",
	} {
		got := w.runCommand(strings.Fields(line)...)
		if got.code != problem.ExitUsage || got.stdout != "" || !strings.HasPrefix(got.stderr, "Error: "+says) || !strings.Contains(got.stderr, " --help`") {
			t.Errorf("%s: %+v", line, got)
		}
	}
	if len(f.calls)+len(f.filters) != 0 {
		t.Errorf("%v %v reached the daemon", f.calls, f.filters)
	}
}

func stderrSection(stderr string) string {
	if stderr == "" {
		return ""
	}
	return "--- stderr\n" + stderr
}

func TestEmpty(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{empty: true})
	for _, line := range []string{"upstream list", "activity list --session none", "tools list", "tools search nothing"} {
		if got := w.runCommand(strings.Fields(line)...); got.code != 0 || got.stdout != "" || got.stderr == "" {
			t.Errorf("%s: %+v", line, got)
		}
		if got := w.runCommand(append(strings.Fields(line), "--json")...); got.stderr != "" || !strings.Contains(got.stdout, "[]") {
			t.Errorf("%s --json: %+v", line, got)
		}
	}
}

// A search names the servers that are not ready and may have the tool: all if nothing matches, otherwise those that the query or a found tool names.
func TestSearchNamesServersThatAreNotReady(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	const failed, installing = "notes (failed, exit status 1: no such file; see `mcpproxy upstream logs notes`)", "推荐 (installing with npx, 40 s)"
	for line, want := range map[string][]string{
		"tools search nothing":                  {"of the servers that are ready", failed + ", " + installing},
		"tools search create":                   {"not ready yet", failed + "."}, // a found tool is of notes
		"tools search create issue --limit 2":   nil,
		"tools search 推荐 --limit 2":             {installing},
		"tools search nothing -o json":          {`"not_ready"`, "installing with npx, 40 s"},
		"tools search create --limit 2 -o json": nil,
	} {
		got := w.runCommand(strings.Fields(line)...)
		said := got.stdout + got.stderr
		if want == nil && (strings.Contains(said, "eady") || strings.Contains(said, "installing")) {
			t.Errorf("%s: %+v", line, got)
		}
		for _, text := range want {
			if got.code != 0 || !strings.Contains(said, text) {
				t.Errorf("%s: no %q in %+v", line, text, got)
			}
		}
	}
}

// A misspelt server name is an error, not an empty list.
func TestToolsOfUnknownServer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		world *fakeOperations
		hint  string
	}{{&fakeOperations{}, "Hint: Did you mean 'github'? There are: github, notes, old, 推荐.\n"}, {&fakeOperations{empty: true}, "mcpproxy upstream add"}} {
		got := newEnvWithDaemon(t, c.world).runCommand("tools", "list", "--server", "gitub")
		if got.code != problem.ExitNotFound || got.stdout != "" || !strings.Contains(got.stderr, "'gitub' not found") || !strings.Contains(got.stderr, c.hint) {
			t.Errorf("%+v", got)
		}
	}
	if got := newEnvWithDaemon(t, &fakeOperations{}).runCommand("tools", "list", "--server", "推荐"); got.code != 0 || !strings.Contains(got.stderr, "No tool matches") {
		t.Errorf("a server without tools: %+v", got)
	}
}

func TestNoArgumentsPrintHelp(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	for _, line := range []string{"", "activity", "help", "help call", "--help"} {
		got := w.runCommand(strings.Fields(line)...)
		if got.code != 0 || !strings.Contains(got.stdout, "Usage:") || got.stderr != "" {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	for line, hint := range map[string]string{
		"statsu":                              "Did you mean `mcpproxy status`?",
		"upstream lst":                        "Did you mean `mcpproxy upstream list`?",
		"help actvity":                        "Did you mean `mcpproxy activity`?",
		"call notes:list":                     "Name the lane before the tool: tool-destructive, tool-read, tool-write. `mcpproxy tools show notes:list` shows the right one.",
		"xyzzy":                               "mcpproxy --help",
		"status --frmat":                      "mcpproxy status --help",
		"status extra":                        "mcpproxy status",
		"upstream get":                        "mcpproxy upstream get <server>",
		"status -o xml":                       "-o json",
		"call tool-read":                      "mcpproxy tools search",
		"call tool-read a:b --timeout soon":   "--help",
		"call tool-read a:b --timeout -1s":    "",
		"call tool-read a:b --args {":         "--args",
		"call tool-read a:b --args @/no/file": "--args @file",
		"call tool-read a:b --tool-name a:b":  "Give one.",
		"call tool-read a:b --args {} --json_args {}": "Give one.",
		"tools show noserver":                         "server:tool",
		"tools search":                                "words",
		"tools list --operation danger":               "",
		"activity list --since tomorrow":              "",
		"activity list --since 1h --start-time 2h":    "Give one.",
		"completion tcsh":                             "",
	} {
		got := w.runCommand(strings.Fields(line)...)
		if got.code != problem.ExitUsage || !strings.HasPrefix(got.stderr, "Error: ") || got.stdout != "" || !strings.Contains(got.stderr, hint) {
			t.Errorf("%s: %+v", line, got)
		}
		if hint != "" && !strings.Contains(got.stderr, "\nHint: ") {
			t.Errorf("%s: no hint in %q", line, got.stderr)
		}
	}
}

func TestErrorsAsJSON(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	for _, line := range []string{"upstream get gitub -o json", "upstream get gitub --json", "-o json upstream get gitub", "upstream get gitub -ojson"} {
		got := w.runCommand(strings.Fields(line)...)
		var e struct {
			Error struct{ Code, Message, Hint string }
		}
		if err := json.Unmarshal([]byte(got.stderr), &e); err != nil || e.Error.Code != "SERVER_NOT_FOUND" || e.Error.Message == "" || e.Error.Hint == "" {
			t.Errorf("%s: %v %+v", line, err, got)
		}
		if got.code != problem.ExitNotFound || got.stdout != "" {
			t.Errorf("%s: %+v", line, got)
		}
	}
	if got := w.runCommand("status", "--no-such-flag", "-o", "json"); !strings.Contains(got.stderr, `"code": "USAGE"`) {
		t.Errorf("a flag that does not exist: %+v", got)
	}
}

func TestDaemonNotRunning(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	for _, line := range []string{"upstream list", "tools search x", "call tool-read a:b", "activity list", "activity show 01"} {
		got := w.runCommand(strings.Fields(line)...)
		if got.code != problem.ExitNoDaemon || !strings.Contains(got.stderr, "mcpproxy serve") || got.stdout != "" {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

func TestInterrupted(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got := w.runCommandWithContext(ctx, "status"); got.code != problem.ExitInterrupted {
		t.Errorf("%+v", got)
	}
}

// The end of a watch by Ctrl-C is no error, but its exit code is that of an interruption.
func TestWatchEndsQuietly(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range [][]string{{"activity", "watch"}, {"activity", "watch", "-o", "json"}} {
		if got := w.runCommandWithContext(ctx, args...); got != (commandOutput{code: problem.ExitInterrupted}) {
			t.Errorf("%+v", got)
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for code, exit := range map[problem.Code]int{
		problem.ServerMismatch: 3, problem.IntentMismatch: 3, problem.ToolLocked: 3, problem.ToolNotFound: 5, problem.Timeout: 7,
		problem.Overloaded: 7, problem.UpstreamError: 1, problem.LoginNeeded: 6, problem.ArgsMismatch: 2, problem.Internal: 1,
	} {
		w := newEnvWithDaemon(t, &fakeOperations{failure: problem.New(code, "It is \x1b[31mwrong.", "Do that.")})
		got := w.runCommand("call", "tool-read", "a:b")
		if got.code != exit || !strings.HasPrefix(got.stderr, "Error: It is wrong.\nHint: ") || got.stdout != "" {
			t.Errorf("%s: %+v", code, got)
		}
	}
}

// allCommands returns every command of the tree.
func allCommands(root *cobra.Command) []*cobra.Command {
	out := []*cobra.Command{root}
	for _, c := range root.Commands() {
		out = append(out, allCommands(c)...)
	}
	return out
}

func TestEveryCommandHelps(t *testing.T) {
	t.Parallel()
	root := newInvocation(Deps{}).newRootCommand()
	root.InitDefaultHelpCmd()
	for _, c := range allCommands(root) {
		path := c.CommandPath()
		if c.Example == "" || c.Short == "" {
			t.Errorf("%s has no example or no description", path)
		}
		if !c.HasSubCommands() && c.Args == nil && c.Name() != "help" {
			t.Errorf("%s takes any argument", path)
		}
		if strings.Contains(c.Use, "<") && c.ValidArgsFunction == nil && c.Name() != "search" {
			t.Errorf("%s completes no argument", path)
		}
	}
}

func TestExamplesAreCommands(t *testing.T) {
	t.Parallel()
	root := newInvocation(Deps{}).newRootCommand()
	for _, c := range allCommands(root) {
		for _, line := range strings.Split(c.Example, "\n") {
			words := strings.Fields(line)
			i := slices.Index(words, "mcpproxy")
			if i < 0 {
				continue
			}
			var names []string
			for _, word := range words[i+1:] {
				if strings.HasPrefix(word, "-") {
					break
				}
				names = append(names, word)
			}
			if found, _, err := root.Find(names); err != nil || found == root {
				t.Errorf("%s: the example %q is no command: %v", c.CommandPath(), line, err)
			}
		}
	}
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	for line, want := range map[string]string{
		"upstream get ":                        "github notes old 推荐",
		"upstream get g":                       "github",
		"upstream get github ":                 "",
		"call tool-read github:c":              "github:create_issue",
		"tools show notes":                     "notes:列出/笔记.v2",
		"activity show 01JG2K3":                "01JG2K3ZZZ0000000000000002 01JG2K3ZZZ0000000000000001",
		"activity list --server n":             "notes",
		"activity list --intent-type ":         "read write destructive",
		"status -o ":                           "table wide json yaml",
		"completion ":                          "bash zsh fish powershell",
		"help activity ":                       "export list redact show summary verify watch",
		"activity redact 01JG2K4":              "01JG2K4ZZZ0000000000000001",
		"help ":                                "activity approvals call can clients completion config connect demo disconnect doctor help lease login notify pause pending permissions policy presence profile registry resume sandbox secrets serve service status stdio token tools ui upstream version",
		"tools approve --kind ":                "tool instructions prompt resource template",
		"tools enable ":                        "notes:列出/笔记.v2",
		"tools unblock ":                       "github:refused",
		"tools block notes":                    "notes:列出/笔记.v2",
		"tools approve github:f":               "github:fresh",
		"activity list --client ":              "cursor",
		"activity export --client c":           "cursor",
		"lease grant github --tools ":          "create_issue delete_repo",
		"lease grant --tools ":                 "",
		"tools diff --kind instructions ":      "github",
		"tools approve --kind instructions ":   "github",
		"tools approve --kind prompt github:r": "github:review",
		"tools unblock --kind prompt ":         "",
		"tools block --kind instructions n":    "notes",
		"upstream show n":                      "notes",
		"token revoke ":                        "ci old",
		"lease grant github --client ":         "ci old",
		"profile show ":                        "research open",
		"secrets delete T":                     "TICKETS",
	} {
		typed := strings.Split(line, " ")
		got := w.runCommand(append([]string{cobra.ShellCompNoDescRequestCmd}, typed...)...)
		lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
		values := strings.Join(lines[:len(lines)-1], " ")
		if last := lines[len(lines)-1]; last != ":4" { // no files
			t.Errorf("%q: directive %s", line, last)
		}
		if got.code != 0 || values != want {
			t.Errorf("%q completes to %q: %+v", line, values, got)
		}
	}
}

func TestCompletionIsSilentWithoutDaemon(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	got := w.runCommand(cobra.ShellCompNoDescRequestCmd, "call", "tool-read", "")
	if got.code != 0 || strings.Contains(got.stdout+got.stderr, "rror") {
		t.Errorf("%+v", got)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if got := w.runCommand("completion", shell); got.code != 0 || !strings.Contains(got.stdout, "mcpproxy") {
			t.Errorf("%s: %d %s", shell, got.code, got.stderr)
		}
	}
}

func TestServeAndDemo(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	var served app.Options
	var shown demo.Options
	w.deps.Serve = func(_ context.Context, o app.Options) error { served = o; return nil }
	w.deps.Demo = func(_ context.Context, o demo.Options) error { shown = o; return errors.New("the port is taken") }
	if got := w.runCommand("serve", "--listen", "127.0.0.1:9", "--config", "/etc/mcp.json"); got.code != 0 {
		t.Errorf("%+v", got)
	}
	if served.ConfigPath != "/etc/mcp.json" || served.DataDir != w.dir || served.Listen != "127.0.0.1:9" || served.AnyPort || served.Stderr == nil {
		t.Errorf("served %+v", served)
	}
	if got := w.runCommand("demo", "--once"); got.code != 1 || !shown.Once || shown.Out == nil {
		t.Errorf("%+v %+v", got, shown)
	}
	w.deps = Deps{}
	if got := w.runCommand("serve"); got.code == 0 {
		t.Errorf("%+v", got)
	}
}

func TestYAMLHoldsTheSameAsJSON(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{answer: api.CallAnswer{Result: json.RawMessage(`{"content":[],"n":9007199254740993,"s":"yes","e":"\u001b[31m","t":"a\nb"}`)}})
	for _, line := range []string{"activity list", "tools list", "call tool-read a:b"} {
		fromJSON, fromYAML := w.runCommand(append(strings.Fields(line), "--json")...), w.runCommand(append(strings.Fields(line), "-o", "yaml")...)
		var b any
		a := decodeExactJSON(t, fromJSON.stdout)
		if err := yaml.Unmarshal([]byte(fromYAML.stdout), &b); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, fromYAML.stdout)
		}
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if string(x) != string(y) {
			t.Errorf("%s:\n%s\n%s", line, x, y)
		}
		if line == "call tool-read a:b" && !strings.Contains(fromYAML.stdout, "9007199254740993") {
			t.Errorf("a large number changed: %s", fromYAML.stdout)
		}
	}
}

// decodeExactJSON decodes JSON and keeps numbers as text.
func decodeExactJSON(t *testing.T, text string) (v any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}

func TestYAML(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		`null`, `true`, `"x"`, `[]`, `{}`, `[[],{}]`, `[[1,[2]],[{"a":{}}]]`, `{"a":[{"b":[]},{"c":null}],"d":"e"}`,
		`{"yes":"no","null":"~","1":"1","a: b":"c: d","x#":"y #z","-":"- a","":"","é":"日本"," s ":" t ","t\tu":"v\tw"}`,
		`["2026-01-15","1e3","0x10","1_000",".5","=","<<","!a","&a","*a","%a","@a","|a",">a","?","'","\"","[a]","{a}","a,b","on","Y","...","---","a:","a b c"]`,
		`["a\nb","a\n","a\n\n","\na"," a\nb","a \nb","a\n b","\n","a\n\nb","a\n\tb","\u001b\n","a\u2028b","\ud83d\ude00\n"]`,
		`{"deep":{"text":"one\n  two\nthree\n","list":["one\ntwo"]}}`,
		`[12345678901234567,-0.5,1.5e+30,9007199254740993]`,
	} {
		out := jsonToYAML([]byte(in))
		var b any
		a := decodeExactJSON(t, in)
		if err := yaml.Unmarshal(out, &b); err != nil {
			t.Errorf("%s: %v\n%s", in, err, out)
			continue
		}
		if x, y := mustMarshalJSON(a), mustMarshalJSON(b); x != y {
			t.Errorf("%s becomes\n%s\nand reads as %s", x, out, y)
		}
	}
}
