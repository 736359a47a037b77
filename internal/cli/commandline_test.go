package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// The program's help lists every command in a group.
func TestHelpGroups(t *testing.T) {
	t.Parallel()
	root := newInvocation(Deps{}).newRootCommand()
	var titles []string
	for _, g := range root.Groups() {
		titles = append(titles, g.Title)
	}
	if got, want := strings.Join(titles, " "), "Start here: Servers: Tools and approvals: Calls and activity: Clients and access: System:"; got != want {
		t.Errorf("groups %q, want %q", got, want)
	}
	for _, c := range root.Commands() {
		if !c.Hidden && c.GroupID == "" {
			t.Errorf("%s is in no group", c.CommandPath())
		}
	}
	help := newTestEnv(t).runCommand("--help").stdout
	at := 0
	for _, title := range titles {
		i := strings.Index(help[at:], "\n"+title+"\n")
		if i < 0 {
			t.Fatalf("the group %q is missing after byte %d of:\n%s", title, at, help)
		}
		at += i
	}
}

// summaryVerbs are the verbs with which summaries begin, all in the imperative.
var summaryVerbs = strings.Fields(`Add Allow Approve Block Call Change Check Confirm Count Create Delete Deny Disable Enable End Erase Explain Find Follow Import Limit List Log Manage Open Print Propose Protect
	Remove Require Reset Restart Resume Review Revoke Run Search Set Show Start Stop Store Test Trust Try Unblock Verify Write`)

func TestSummariesBeginWithVerb(t *testing.T) {
	t.Parallel()
	for _, c := range allCommands(newInvocation(Deps{}).newRootCommand()) {
		if first, _, _ := strings.Cut(strings.TrimSuffix(c.Short, ","), " "); !slices.Contains(summaryVerbs, strings.TrimSuffix(first, ",")) {
			t.Errorf("%s: %q does not begin with a known verb", c.CommandPath(), c.Short)
		}
		if strings.HasSuffix(c.Short, ".") || len(c.Short) > 70 {
			t.Errorf("%s: %q has a full stop or more than 70 characters", c.CommandPath(), c.Short)
		}
	}
}

// Every list command has the alias ls and the flags -q and -o wide. show has the alias get, and remove has the alias
// rm.
func TestStandardAliases(t *testing.T) {
	t.Parallel()
	for _, c := range allCommands(newInvocation(Deps{}).newRootCommand()) {
		want := map[string]string{"list": "ls", "show": "get", "get": "show", "remove": "rm", "delete": "rm"}[c.Name()]
		if want != "" && !c.HasAlias(want) {
			t.Errorf("%s has no alias %s", c.CommandPath(), want)
		}
		if c.Name() == "list" && c.Flags().ShorthandLookup("q") == nil {
			t.Errorf("%s has no -q", c.CommandPath())
		}
	}
	w := newEnvWithDaemon(t, &fakeOperations{})
	for line, same := range map[string]string{
		"upstream ls": "upstream list", "upstream show github": "upstream get github", "tools get github:create_issue": "tools show github:create_issue",
		"activity get 01JG2K4": "activity show 01JG2K4", "approvals ls": "approvals", "approvals list": "approvals", "secrets rm GITHUB_TOKEN --yes": "secrets delete GITHUB_TOKEN --yes",
		"upstream rm github --yes": "upstream remove github --yes", "upstream delete github --yes": "upstream remove github --yes",
	} {
		got, want := w.runCommand(strings.Fields(line)...), w.runCommand(strings.Fields(same)...)
		if got.code != 0 || got.stdout != want.stdout || got.stdout == "" {
			t.Errorf("%s: %+v, want %+v", line, got, want)
		}
	}
}

func TestQuietPrintsNames(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	for line, want := range map[string]string{
		"upstream list -q":           "github\nnotes\nold\n推荐\n",
		"tools ls --quiet":           "github:create_issue\ngithub:delete_repo\nnotes:列出/笔记.v2\n",
		"tools search issue -q":      "github:create_issue\ngithub:delete_repo\nnotes:列出/笔记.v2\n",
		"activity list --limit 2 -q": "01JG2K4ZZZ0000000000000001\n01JG2K3ZZZ0000000000000002\n",
	} {
		if got := w.runCommand(strings.Fields(line)...); got.code != 0 || got.stdout != want || got.stderr != "" {
			t.Errorf("%s: %+v", line, got)
		}
	}
	for _, line := range []string{"approvals -q", "approvals list -q", "token list -q", "profile list -q", "secrets list -q", "lease list -q", "pending list -q"} {
		got := w.runCommand(strings.Fields(line)...)
		if got.code != 0 || got.stderr != "" || got.stdout == "" || strings.Contains(got.stdout, "  ") || strings.Contains(got.stdout, "NAME") {
			t.Errorf("%s: %+v", line, got)
		}
	}
	if got := w.runCommand("upstream", "list", "-q", "-o", "json"); got.code != problem.ExitUsage {
		t.Errorf("%+v", got)
	}
	if got := w.runCommand("upstream", "get", "github", "-q"); got.code != problem.ExitUsage {
		t.Errorf("-q for a command that prints no list: %+v", got)
	}
}

// With -o wide, a table has all columns and cuts none, even on a narrow terminal.
func TestWideTables(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	w.env["COLUMNS"] = "40"
	for line, columns := range map[string]string{
		"upstream list": "NAME PROTOCOL STATE TOOLS RESTARTS SINCE NOTE",
		"tools list":    "TOOL CALL STATUS HINTS DESCRIPTION",
		"activity list": "ID TIME SERVER TOOL INTENT STATUS DURATION OWN ACTOR CLIENT DETAIL",
		"token list":    "NAME PROFILE SERVERS LANES CREATED EXPIRES LAST",
	} {
		got := w.runCommand(append(strings.Fields(line), "-o", "wide")...)
		head := strings.Fields(firstLine(got.stdout))
		for _, column := range strings.Fields(columns) {
			if !slices.Contains(head, column) {
				t.Errorf("%s -o wide has no column %s: %+v", line, column, got)
			}
		}
		if strings.Contains(got.stdout, "…") {
			t.Errorf("%s -o wide is cut:\n%s", line, got.stdout)
		}
	}
}

// All IDs in a table have the same length, and each can be used as an argument.
func TestIDsOfTablesAreArguments(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	length := 0
	for i, line := range strings.Split(strings.TrimSpace(w.runCommand("activity", "list").stdout), "\n") {
		if i == 0 {
			continue
		}
		id, _, _ := strings.Cut(line, " ")
		if length == 0 {
			length = len(id)
		}
		if len(id) != length {
			t.Errorf("the ID %q does not have %d characters", id, length)
		}
		if got := w.runCommand("activity", "show", id); got.code != 0 {
			t.Errorf("show %s: %+v", id, got)
		}
	}
	if got := w.runCommand("lease", "revoke", "l1"); got.code != 0 {
		t.Errorf("a unique prefix of a lease: %+v", got)
	}
}

// Without --type, activity list requests calls and refusals and says so.
func TestActivityListShowsCalls(t *testing.T) {
	t.Parallel()
	f := &fakeOperations{}
	w := newEnvWithDaemon(t, f)
	for _, c := range []struct {
		line  string
		types []activity.Type
		said  bool
	}{
		{"activity list", []activity.Type{activity.ToolCall, activity.PolicyDecision}, true},
		{"activity list --type all", nil, false},
		{"activity list --type system,all", nil, false},
		{"activity list --type approval", []activity.Type{activity.Approval}, false},
	} {
		got := w.runCommand(strings.Fields(c.line)...)
		last := f.filters[len(f.filters)-1]
		if got.code != 0 || !slices.Equal(last.Types, c.types) || strings.Contains(got.stderr, "--type all") != c.said {
			t.Errorf("%s: %v, %+v", c.line, last.Types, got)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	for line, want := range map[string]string{
		"connect cluade-code --dry-run": "claude-code",
		"connect cursor vscod --yes":    "vscode",
		"disconnect curser --dry-run":   "cursor",
		"permissions windsurfer":        "windsurf",
		"profile show reserch":          "research",
		"tools show github:creat_issue": "github:create_issue",
		"tools list --server gitub":     "github",
		"upstream restart gihub":        "github",
		"upstream lst":                  "mcpproxy upstream list",
		"approvals lst":                 "mcpproxy approvals list",
	} {
		got := w.runCommand(strings.Fields(line)...)
		if got.code == 0 || !strings.Contains(got.stderr, "Did you mean") || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// Long output is shown in the pager, but only on a terminal.
func TestPager(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shown, script := filepath.Join(dir, "shown"), filepath.Join(dir, "pager")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"paged by $1\"\ncat > "+shown+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("line\n", 30)
	for name, c := range map[string]struct {
		change func(r *invocation)
		out    string
		paged  bool
	}{
		"long":         {func(*invocation) {}, long, true},
		"short":        {func(*invocation) {}, "line\n", false},
		"no terminal":  {func(r *invocation) { r.terminal = false }, long, false},
		"--no-pager":   {func(r *invocation) { r.noPager = true }, long, false},
		"empty PAGER":  {func(r *invocation) { r.Getenv = func(string) string { return " " } }, long, false},
		"not found":    {func(r *invocation) { r.Getenv = func(string) string { return filepath.Join(dir, "none") } }, long, false},
		"unknown size": {func(r *invocation) { r.height = 0 }, long, false},
	} {
		_ = os.Remove(shown)
		var out strings.Builder
		r := newInvocation(Deps{Stdout: &out, Getenv: func(name string) string { return map[string]string{"PAGER": script + " -x"}[name] }})
		r.terminal, r.height = true, 24
		c.change(r)
		if err := r.writePaged([]byte(c.out)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got, _ := os.ReadFile(shown)
		if c.paged && (string(got) != c.out || out.String() != "paged by -x\n") || !c.paged && out.String() != c.out {
			t.Errorf("%s: paged %q, printed %q", name, got, out.String())
		}
	}
}

// The same form of the command sets every key, and sets or removes members of env and headers.
func TestUpstreamSetForm(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"env TOKEN=${env:X} B=2":       `set github env {"B":"2","TOKEN":"${env:X}"}`,
		"env OLD --unset":              `set github env {"OLD":null}`,
		"env --unset":                  `set github env `,
		`env {"A":"1"}`:                `set github env {"A":"1"}`,
		"headers Accept:text":          `set github headers {"Accept":"text"}`,
		"infer_hints enforce":          `set github infer_hints "enforce"`,
		"--env A=1 --unset-env B":      `set github env {"A":"1","B":null}`,
		"--header A:b":                 `set github headers {"A":"b"}`,
		"--infer-hints enforce":        `set github infer_hints "enforce"`,
		"headers A B --unset":          `set github headers {"A":null,"B":null}`,
		"command -- sh -c":             `set github command ["sh","-c"]`,
		"disabled_tools delete_* b":    `set github disabled_tools ["delete_*","b"]`,
		"hint_overrides {\"a\":{}}":    `set github hint_overrides {"a":{}}`,
		"working_dir /tmp":             `set github working_dir "/tmp"`,
		"call_timeout 5m":              `set github call_timeout "5m"`,
		"disabled_tools --unset":       `set github disabled_tools `,
		"url https://example.com/path": `set github url "https://example.com/path"`,
	} {
		f := &fakeOperations{}
		got := newEnvWithDaemon(t, f).runCommand(append([]string{"upstream", "set", "github"}, strings.Fields(line)...)...)
		if got.code != 0 || len(f.decisions) != 1 || f.decisions[0] != want {
			t.Errorf("%s: %q, want %q: %+v", line, f.decisions, want, got)
		}
	}
	help := newTestEnv(t).runCommand("upstream", "set", "--help").stdout
	for _, flag := range []string{"--env", "--header", "--infer-hints", "--unset-env", "--unset-header"} {
		if strings.Contains(help, flag) {
			t.Errorf("the help of upstream set shows %s", flag)
		}
	}
}

// config show shows the daemon's configuration, or the file if no daemon is running.
func TestConfigShow(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	got := w.runCommand("config", "show")
	if got.code != 0 || !strings.Contains(got.stdout, `"listen": "127.0.0.1:9999"`) || !strings.Contains(got.stderr, "The active configuration") {
		t.Errorf("with a daemon: %+v", got)
	}
	var shown map[string]json.RawMessage
	if got = newTestEnv(t).runCommand("config", "show", "-o", "json"); got.code != 0 || json.Unmarshal([]byte(got.stdout), &shown) != nil || shown["listen"] == nil {
		t.Errorf("without a daemon: %+v", got)
	}
	if got = newTestEnv(t).runCommand("config", "show"); !strings.Contains(got.stderr, "not running") {
		t.Errorf("without a daemon: %+v", got)
	}
}

func TestFollowedLog(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	if got := w.runCommand("upstream", "logs", "github", "-f", "-n", "5"); got.code != 0 || got.stdout != "first\n[mcpproxy] secondx\n" {
		t.Errorf("%+v", got)
	}
	if got := w.runCommand("upstream", "logs", "github", "-f", "--json"); got.code != 0 || strings.Count(got.stdout, "\n") != 2 || !json.Valid([]byte(firstLine(got.stdout))) {
		t.Errorf("%+v", got)
	}
}
