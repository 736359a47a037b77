package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

func TestTrustTables(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	for name, line := range map[string]string{
		"approvals":           "approvals",
		"approvals-json":      "approvals -o json",
		"tools-diff":          "tools diff github:changed",
		"tools-diff-new":      "tools diff github:fresh",
		"offers-diff":         "tools diff --kind instructions github",
		"offers-diff-new":     "tools diff --kind prompt github:review",
		"offers-approve-all":  "tools approve --kind prompt github:* --yes",
		"tools-approve-all":   "tools approve github:* --yes",
		"tools-enable":        "tools enable github:delete_repo",
		"upstream-review":     "upstream review notes",
		"upstream-review-def": "upstream review old",
		"upstream-full":       "upstream review old --full",
		"upstream-approve":    "upstream approve notes --yes",
	} {
		got := w.runCommand(strings.Fields(line)...)
		if got.code != 0 {
			t.Errorf("%s: exit code %d, %s", line, got.code, got.stderr)
		}
		compareWithGolden(t, name, got.stdout+stderrSection(got.stderr))
		if strings.ContainsAny(got.stdout+got.stderr, "\x1b\u202e\u200b\a") {
			t.Errorf("%s: the output contains terminal control sequences or hides text", line)
		}
	}
}

// The command sends exactly the fingerprints that the user confirmed, and nothing without a yes.
func TestConsent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line, answer string // answer "" means no terminal
		code         int
		decided      string
		says         string
	}{
		{"tools approve github:fresh", "y", 0, "approve github:fresh 4e30", "Approved github:fresh."},
		{"tools approve github:fresh", " YES\n", 0, "approve github:fresh 4e30", "Fingerprint"},
		{"tools approve github:fresh", "n", problem.ExitInterrupted, "", "nothing was changed"},
		{"tools approve github:fresh", "\n", problem.ExitInterrupted, "", "nothing was changed"},
		{"tools approve github:fresh", "yep", problem.ExitInterrupted, "", "nothing was changed"},
		{"tools approve github:fresh", "", problem.ExitUsage, "", "mcpproxy tools approve github:fresh --fingerprint " + printOfNew},
		{"tools approve github:fresh -o json", "y", problem.ExitUsage, "", "--yes"},
		{"tools approve github:fresh --yes", "", 0, "approve github:fresh 4e30", "Approved"},
		{"tools approve github:changed --yes", "", 0, "approve github:changed c4a9", "{+, and"},
		{"tools approve github:fresh --fingerprint " + printOfNew, "", 0, "approve github:fresh 4e30", "Approved"},
		{"tools approve github:fresh --fingerprint " + printOfChange, "", problem.ExitFailed, "", "mcpproxy tools diff github:fresh"},
		{"tools approve github:racy --yes", "", problem.ExitFailed, "", "mcpproxy tools diff github:racy"},
		{"tools approve github:create_issue", "", 0, "", "approved already"},
		{"tools approve github:missing", "y", problem.ExitNotFound, "", "not found"},
		{"tools approve github:*", "y", 0, "together 2|approve github:fresh 4e30|approve github:a b 4e30", "Not included"},
		{"tools approve github:*", "", problem.ExitUsage, "", "--yes"},
		{"tools approve --server github --all --yes", "", 0, "together 2|approve github:fresh 4e30|approve github:a b 4e30", "Approved 2 tools"},
		{"tools approve github:* --yes --with-findings", "", 0, "together 2|approve github:fresh 4e30|approve github:a b 4e30|approve github:half 4e30|approve github:changed c4a9", "Approved 4 tools"},
		{"tools approve old:* --yes", "", problem.ExitRefused, "", "mcpproxy upstream approve old"},
		{"tools approve gitub:* --yes", "", problem.ExitNotFound, "", ""},
		{"tools approve github:* --fingerprint " + printOfNew, "", 0, "approve github:* 4e30", "Approved github:*"},
		{"tools approve", "", problem.ExitUsage, "", "mcpproxy approvals"},
		{"tools approve --all", "", problem.ExitUsage, "", "--server"},
		{"tools approve --server github", "", problem.ExitUsage, "", "--all"},
		{"tools approve github:fresh --server github --all", "", problem.ExitUsage, "", ""},
		{"tools approve --server github --all --fingerprint x", "", problem.ExitUsage, "", "single"},
		{"tools approve github:fresh --with-findings", "", problem.ExitUsage, "", ""},
		{"tools approve --kind prompt github:review", "y", 0, "approve prompt github:review 4e30", "Approved the prompt github:review."},
		{"tools approve --kind prompt github:review", "n", problem.ExitInterrupted, "", "nothing was changed"},
		{"tools approve --kind prompt github:review", "", problem.ExitUsage, "", "mcpproxy tools approve --kind prompt github:review --fingerprint " + printOfNew},
		{"tools approve --kind prompt github:racy --yes", "", problem.ExitFailed, "", "mcpproxy tools diff --kind prompt github:racy"},
		{"tools approve --kind prompt github:settled", "", 0, "", "approved already"},
		{"tools approve --kind prompt github:missing", "y", problem.ExitNotFound, "", "There is no"},
		{"tools approve --kind instructions github --yes", "", 0, "approve instructions github: c4a9", "{+,"},
		{"tools approve --kind instructions", "", problem.ExitUsage, "", "Missing argument: server.\n"},
		{"tools approve --kind prompt", "", problem.ExitUsage, "", "Missing argument: server:prompt.\n"},
		{"tools approve --kind instructions github:x", "", problem.ExitUsage, "", "alone"},
		{"tools approve --kind prompt github", "", problem.ExitUsage, "", "a colon and the prompt"},
		{"tools approve --kind prompts github:review", "", problem.ExitUsage, "", "prompt, resource, template"},
		{"tools approve --kind resource github:repo://a/b?c=d --fingerprint " + printOfNew, "", 0, "approve resource github:repo://a/b?c=d 4e30", "Approved"},
		{"tools approve --kind prompt github:* --yes", "", 0, "together 1|approve prompt github:review 4e30", "Not included"},
		{"tools approve --kind resource github:* --yes", "", problem.ExitFailed, "together 1", "repo://a/b?c=d: It has changed since it was looked at."},
		{"tools approve --kind prompt --server github --all", "", problem.ExitUsage, "", "--yes"},
		{"tools approve --kind prompt --server github --all --yes --with-findings", "", 0, "together 1|approve prompt github:review 4e30|approve prompt github:odd\u202e one 4e30", "Approved 2 prompts"},
		{"tools approve --kind prompt --all", "", problem.ExitUsage, "", "--server"},
		{"tools approve --kind prompt", "", problem.ExitUsage, "", "mcpproxy approvals"},
		{"tools block --kind template github:x://{a}", "", 0, "block template github:x://{a} 4e30", "Blocked the template"},
		{"tools block --kind instructions github --fingerprint " + printOfNew, "", problem.ExitFailed, "", "tools diff --kind instructions github"},
		{"tools block github:fresh", "", 0, "block github:fresh 4e30", "Blocked"},
		{"tools block github:fresh --fingerprint " + printOfChange, "", problem.ExitFailed, "", "tools diff"},
		{"tools unblock github:fresh", "", 0, "unblock github:fresh 4e30", "mcpproxy tools approve github:fresh"},
		{"tools unblock github:fresh --fingerprint " + printOfChange, "", problem.ExitFailed, "", "Nothing was unblocked"},
		{"tools unblock --kind template github:x://{a}", "", 0, "unblock template github:x://{a} 4e30", "tools approve --kind template"},
		{"tools block github:fresh", "", 0, "block github:fresh 4e30", "mcpproxy tools unblock github:fresh"},
		{"tools set github:delete_repo --alias new_bug", "", 0, `tool github:delete_repo alias "new_bug"`, "Your alias"},
		{"tools set github:delete_repo --always=false", "", 0, "tool github:delete_repo always ", "has the server's name and description"},
		{"tools set github:delete_repo", "", 2, "", "Nothing to set"},
		{"tools disable github:delete_repo", "", 0, "switch github:delete_repo false", "is disabled"},
		{"tools enable github:create_issue", "", 0, "switch github:create_issue true", "is enabled"},
		{"upstream approve notes", "y", 0, "approve notes 1a00", "sh -c 'touch /tmp/x; echo <U+202E>gnp.exe'"},
		{"upstream approve notes", "n", problem.ExitInterrupted, "", "TOKEN"},
		{"upstream approve notes", "", problem.ExitUsage, "", "--fingerprint " + printOfLaunch},
		{"upstream approve old --yes", "", problem.ExitRefused, "", "--with-findings"},
		{"upstream approve old", "y", 0, "approve old 7001", "can be called"},
		{"upstream approve old --yes --with-findings", "", 0, "approve old 7001", "can be called"},
		{"upstream approve old --fingerprint " + printOfTools, "", 0, "approve old 7001", "can be called"},
		{"upstream approve old --fingerprint " + printOfLaunch, "", problem.ExitFailed, "", "mcpproxy upstream review old"},
		{"upstream approve github --yes", "", 0, "", "Nothing of github awaits approval"},
		{"upstream approve off --yes", "", 0, "approve off 7001", "mcpproxy upstream enable off"},
		{"upstream approve soon --yes", "", 0, "approve soon 7001", "Waiting until soon lists its tools."},
		{"upstream approve asleep --yes", "", problem.ExitTryAgain, "", "not listed its tools"},
		{"upstream approve 推荐 --yes", "", problem.ExitTryAgain, "", "not listed its tools"},
		{"upstream approve gitub --yes", "", problem.ExitNotFound, "", ""},
		{"upstream remove github", "", problem.ExitUsage, "", "--yes"},
		{"upstream remove github", "y", 0, "remove github", "Removed github."},
		{"upstream remove github --yes", "", 0, "remove github", "Removed github."},
		{"upstream remove github", "n", problem.ExitInterrupted, "", ""},
		{"upstream enable github", "", 0, "enable github true", "github is enabled."},
		{"upstream disable github", "", 0, "enable github false", "github is disabled."},
		{"upstream set github trust manual", "", 0, `set github trust "manual"`, "Set trust of github."},
		{"upstream set github disabled_tools a* b", "", 0, `set github disabled_tools ["a*","b"]`, "Set disabled_tools of github."},
		{"upstream set github disabled_tools --unset", "", 0, "set github disabled_tools ", "Removed disabled_tools of github."},
		{`upstream set github hint_overrides {"a":{}}`, "", 0, `set github hint_overrides {"a":{}}`, "Set hint_overrides of github."},
		{"upstream set github hint_overrides {", "", problem.ExitUsage, "", "JSON"},
		{"upstream set github infer_hints advise", "", 0, `set github infer_hints "advise"`, "Set infer_hints of github."},
		{"upstream set github --infer-hints enforce", "", 0, `set github infer_hints "enforce"`, "Set infer_hints of github."},
		{"upstream set github --infer-hints enforce trust", "", problem.ExitUsage, "", "Unexpected argument"},
		{"upstream set github --infer-hints off --unset", "", problem.ExitUsage, "", "either"},
		{"upstream set github trust", "", problem.ExitUsage, "", "--unset"},
		{"upstream set github trust a b", "", problem.ExitUsage, "", "one value"},
		{"upstream set github trust a --unset", "", problem.ExitUsage, "", "either"},
		{"upstream set github trst auto", "", problem.ExitUsage, "", "Did you mean trust?"},
		{"upstream set github args sh", "", problem.ExitUsage, "", "The keys are"},
		{"upstream set github command -- sh -c", "", 0, `set github command ["sh","-c"]`, "Set command of github."},
		{"upstream set github --env A=1 --unset-env B", "", 0, `set github env {"A":"1","B":null}`, "Set env of github."},
		{"upstream set github --header A:1", "", 0, `set github headers {"A":"1"}`, "Set headers of github."},
		{"upstream set github", "", problem.ExitUsage, "", "key"},
		{"upstream set gitub trust auto", "", problem.ExitNotFound, "set gitub trust \"auto\"", ""},
		{"upstream quarantine github", "", 0, "quarantine github", "github is quarantined."},
	} {
		f := &fakeOperations{}
		w := newEnvWithDaemon(t, f)
		if c.answer != "" {
			w.deps.Ask = func(context.Context, string) (string, error) { return c.answer, nil }
		}
		got := w.runCommand(strings.Fields(c.line)...)
		if got.code != c.code || strings.Join(f.decisions, "|") != c.decided || !strings.Contains(got.stdout+got.stderr, c.says) {
			t.Errorf("%s, answered %q: code %d, decided %q\n%s\n%s", c.line, c.answer, got.code, f.decisions, got.stdout, got.stderr)
		}
	}
}

// The command shows the complete definitions before it asks for an approval.
func TestApprovingShowsTheWholeDefinitions(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	w.deps.Ask = func(context.Context, string) (string, error) { return "y", nil }
	if got := w.runCommand("upstream", "approve", "old"); got.code != 0 || !strings.Contains(got.stdout, "\ndescription\n  Does a.") {
		t.Errorf("%+v", got)
	}
}

// For a changed tool of an approved server, the command shows only the difference, not all definitions of the server.
func TestApprovingShowsTheDifference(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	w.deps.Ask = func(context.Context, string) (string, error) { return "y", nil }
	got := w.runCommand("upstream", "approve", "grown")
	if lines := strings.Count(got.stdout, "\n"); got.code != 0 || lines > 60 || strings.Count(got.stdout, "{+new+}") != 2 || !strings.Contains(got.stdout, "Not shown: 39 definitions (approved already)") {
		t.Errorf("%d lines, code %d\n%s%s", lines, got.code, got.stdout, got.stderr)
	}
}

func TestUpstreamAdd(t *testing.T) {
	t.Parallel()
	f := &fakeOperations{}
	w := newEnvWithDaemon(t, f)
	add := func(args ...string) commandOutput {
		return w.runCommand(append([]string{"upstream", "add"}, args...)...)
	}
	got := add("files", "--env", "A=b=c", "--env", "T=${env:T}", "--working-dir", "/w", "--trust", "manual", "--quarantined", "--", "npx", "-y", "--yes", "pkg")
	if got.code != 0 || !strings.Contains(got.stdout, "Added files: it is quarantined.") || !strings.Contains(got.stderr, "upstream approve files") {
		t.Errorf("%+v", got)
	}
	if got = add("remote", "--url", "https://example.com/mcp", "--header", "Authorization: Bearer a:b"); got.stdout != "Added remote: it is ready, with 1 tool.\n" || got.stderr != "Waiting until remote is ready.\n" {
		t.Errorf("%+v", got)
	}
	want := []ops.AddServerRequest{
		{Name: "files", Launch: config.Launch{Command: "npx", Args: []string{"-y", "--yes", "pkg"}, Env: map[string]string{"A": "b=c", "T": "${env:T}"}, WorkingDir: "/w"}, Trust: "manual", Quarantined: true},
		{Name: "remote", Launch: config.Launch{URL: "https://example.com/mcp", Headers: map[string]string{"Authorization": "Bearer a:b"}}},
	}
	a, _ := json.Marshal(want)
	b, _ := json.Marshal(f.added)
	if string(a) != string(b) || !slices.Equal(f.decisions, []string{"add files by admin over cli", "add remote by admin over cli"}) {
		t.Errorf("got %s\nwant %s\n%q", b, a, f.decisions)
	}
	f.warnings = []string{"The proposal of an agent for a server named 'shop' was withdrawn, because you added this server."}
	if got = add("shop", "--", "x"); got.code != 0 || !strings.Contains(got.stderr, f.warnings[0]) {
		t.Errorf("%+v", got)
	}
	f.added, f.decisions = f.added[:2], f.decisions[:2]
	const secret = "hunter2-hunter2"
	for hint, args := range map[string][]string{
		"Missing argument: name":          {},
		"Missing argument: name.":         {"--", "npx"},
		"as in `mcpproxy upstream add x ": {"x", "npx"},
		"Write the command":               {"x", "npx", "--", "y"},
		"add x --url https://x/mcp":       {"x", "https://x/mcp"},
		"Missing --url or a command":      {"x"},
		"not both":                        {"x", "--url", "http://y", "--", "z"},
		"Invalid value for --env: it":     {"x", "--env", secret, "--", "z"},
		"A is given twice":                {"x", "--env", "A=" + secret, "--env", "A=2", "--", "z"},
		"Invalid value for --header":      {"x", "--url", "http://y", "--header", ":" + secret},
	} {
		if got := add(args...); got.code != problem.ExitUsage || !strings.Contains(got.stderr, hint) || strings.Contains(got.stderr, secret) {
			t.Errorf("%q: %+v", args, got)
		}
	}
	if len(f.added) != 2 {
		t.Errorf("got %d added servers, want 2", len(f.added))
	}
}

// Without -- the error shows the intended command, whatever its flags are.
func TestAddWithoutDash(t *testing.T) {
	t.Parallel()
	f := &fakeOperations{}
	w := newEnvWithDaemon(t, f)
	const secret = "hunter2-hunter2"
	for args, want := range map[string]string{
		"foo npx -y x":                        "`mcpproxy upstream add foo -- npx -y x`",
		"foo uvx mcp-server-time":             "`mcpproxy upstream add foo -- uvx mcp-server-time`",
		"foo docker run -i --rm image":        "`mcpproxy upstream add foo -- docker run -i --rm image`",
		"foo --trust manual npx -y x":         "`mcpproxy upstream add foo --trust … -- npx -y x`",
		"--env A=" + secret + " foo npx -y x": "`mcpproxy upstream add foo --env … -- npx -y x`",
		"foo x --api-key " + secret:           "`mcpproxy upstream add foo -- x --api-key ",
		"foo --quarantined python -m server":  "`mcpproxy upstream add foo --quarantined -- python -m server`",
	} {
		got := w.runCommand(append([]string{"upstream", "add"}, strings.Fields(args)...)...)
		if got.code != problem.ExitUsage || !strings.Contains(got.stderr, want) || strings.Contains(got.stderr, secret) {
			t.Errorf("%q: %+v, want %s", args, got, want)
		}
	}
	if len(f.added) > 0 {
		t.Errorf("%d invalid servers were added", len(f.added))
	}
}

// The command waits for the first start of the added server and reports its outcome.
func TestAddReportsTheStart(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		code           int
		stdout, stderr []string
	}{
		"half": {0, []string{"Added half: it is ready, with 14 tools, 2 wait for approval: mcpproxy approvals\n"}, nil},
		"bad": {problem.ExitTryAgain, []string{"Added bad, but it failed to start.\n"},
			[]string{"Error: Server 'bad' did not start: exit status 3: oh no\n", "stays configured", "upstream logs bad", "upstream remove bad"}},
		"closed": {problem.ExitLogin, []string{"Added closed: it needs a login.\n"}, []string{"did not start: it requires a login", "`mcpproxy login closed`"}},
	} {
		w := newEnvWithDaemon(t, &fakeOperations{})
		got := w.runCommand("upstream", "add", name, "--", "x")
		for _, s := range want.stdout {
			if got.code != want.code || !strings.Contains(got.stdout, s) {
				t.Errorf("%s: no %q in %+v", name, s, got)
			}
		}
		for _, s := range want.stderr {
			if !strings.Contains(got.stderr, s) {
				t.Errorf("%s: no %q in %q", name, s, got.stderr)
			}
		}
		got = newEnvWithDaemon(t, &fakeOperations{}).runCommand("upstream", "add", name, "-o", "json", "--", "x")
		var v ops.ServerView
		if err := json.Unmarshal([]byte(got.stdout), &v); err != nil || v.Name != name || got.code != want.code || v.State == "connecting" {
			t.Errorf("%s: %v, %+v", name, err, got)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	w := newEnvWithWrappedDaemon(t, &fakeOperations{}, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/servers/slow") {
				leave() // interrupts the command while it waits
			}
			h.ServeHTTP(w, r)
		})
	})
	if got := w.runCommandWithContext(ctx, "upstream", "add", "slow", "--", "x"); ctx.Err() == nil || got.code != problem.ExitInterrupted || !strings.Contains(got.stderr, "stays configured") {
		t.Errorf("%+v", got)
	}
}

// Commands that only edit the file work without the daemon, with the same checks. Commands that approve or block do
// not.
func TestServersWithoutTheDaemon(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	path := filepath.Join(w.env["HOME"], ".mcpproxy", "mcp_config.json")
	file := func() string { text, _ := os.ReadFile(path); return string(text) }
	do := func(code int, says string, args ...string) {
		t.Helper()
		before := file()
		got := w.runCommand(append([]string{"upstream"}, args...)...)
		if got.code != code || !strings.Contains(got.stdout+got.stderr, says) || code != 0 && file() != before {
			t.Errorf("%q: %+v\n%s", args, got, file())
		}
	}
	const later = "takes effect at the next start"
	do(0, later, "add", "files", "--env", "A=1", "--env", "B=${env:HOME}", "--", "npx", "-y", "pkg")
	do(0, `"state": "stopped"`, "add", "remote", "--url", "https://example.com/mcp", "-o", "json")
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	do(problem.ExitFailed, "A server named 'Files' already", "add", "Files", "--", "x")
	do(problem.ExitUsage, "The url must begin", "add", "x", "--url", "ftp://x")
	do(problem.ExitUsage, "cannot be its own server", "add", "me", "--url", "http://localhost:8080/mcp")
	do(problem.ExitUsage, "cannot be its own server", "set", "files", "command", "--", "/usr/bin/mcpproxy", "stdio")
	do(0, later, "set", "files", "--env", "C=${env:NOT_SET}") // this prevents only this server from starting
	do(problem.ExitFailed, "call_timeout must be", "set", "files", "call_timeout", "soon")
	do(0, later, "set", "files", "--env", "A=2", "--unset-env", "B", "--unset-env", "C")
	do(0, later, "set", "files", "call_timeout", "30s")
	do(0, later, "set", "files", "command", "--", "node", "-v")
	do(0, later, "set", "remote", "--header", "X-A: b c")
	do(0, later, "set", "remote", "url", "https://example.org/mcp")
	do(0, later, "disable", "remote")
	do(problem.ExitNotFound, "not in the configuration file", "enable", "other")
	do(problem.ExitUsage, "--yes", "remove", "files")
	do(problem.ExitNoDaemon, "MCPProxy is not running", "approve", "files")
	do(problem.ExitNoDaemon, "MCPProxy is not running", "list")
	live, err := config.OpenLiveConfig(path, config.Options{Lookup: func(name string) (string, bool) { v, ok := w.env[name]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	files, remote := live.Current().Server("files"), live.Current().Server("remote")
	if files == nil || files.Command != "node" || !slices.Equal(files.Args, []string{"-v"}) || len(files.Env) != 1 || files.Env["A"] != "2" || files.CallTimeout != 30*time.Second || files.Quarantined {
		t.Errorf("%s", file())
	}
	if remote == nil || remote.Enabled || remote.URL != "https://example.org/mcp" || remote.Headers["X-A"] != "b c" {
		t.Errorf("%s", file())
	}
	do(0, "are kept", "remove", "files", "--yes")
	if strings.Contains(file(), "files") {
		t.Errorf("%s", file())
	}
}

func TestSetArguments(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	const secret = "hunter2-hunter2"
	for says, args := range map[string][]string{
		"Missing argument: key":              {"a"},
		"Change one setting at a time":       {"a", "--env", "A=1", "--header", "B: 1"},
		"Change one setting at a time: pass": {"a", "--infer-hints", "off", "--env", "A=1"},
		"Change one setting at a time: ":     {"a", "--unset", "--unset-header", "A"},
		"Unexpected argument 'trust'":        {"a", "trust", "manual", "--env", "A=1"},
		"Invalid value for --env: it":        {"a", "--env", secret},
		"does not also set":                  {"a", "--env", "A=1", "--unset-env", "A"},
		"The key call_timeout has one":       {"a", "call_timeout", "1s", "2s"},
		"The key 'args' cannot be set":       {"a", "args", "x"},
	} {
		if got := w.runCommand(append([]string{"upstream", "set"}, args...)...); got.code != problem.ExitUsage || !strings.Contains(got.stderr, says) || strings.Contains(got.stderr, secret) {
			t.Errorf("%q: %+v", args, got)
		}
	}
}

func TestNoPendingApprovals(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{empty: true})
	if got := w.runCommand("approvals"); got.code != 0 || got.stdout != "" || got.stderr != "Nothing awaits approval.\n" {
		t.Errorf("%+v", got)
	}
	if got := w.runCommand("approvals", "--json"); !strings.Contains(got.stdout, `"servers": []`) || !strings.Contains(got.stdout, `"tools": []`) {
		t.Errorf("%+v", got)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	p := newInvocation(Deps{Now: func() time.Time { return parseRFC3339("2026-01-15T10:00:00Z") }}).newPrinter(nil)
	for when, want := range map[string]string{
		"2026-01-15T09:59:18Z": "42s", "2026-01-15T09:15:00Z": "45m", "2026-01-15T07:00:00Z": "3h", "2026-01-01T10:00:00Z": "14d", "2027-01-01T00:00:00Z": "0s",
	} {
		then := parseRFC3339(when)
		if got := p.formatAge(&then); got != want {
			t.Errorf("%s is %s old, want %s", when, got, want)
		}
	}
	if got := p.formatAge(nil); got != "" {
		t.Errorf("a missing time is %q old", got)
	}
}

// Marks are visible without color, and color does not change the text.
func TestMarks(t *testing.T) {
	t.Parallel()
	plain, coloured := newInvocation(Deps{}), newInvocation(Deps{Getenv: func(string) string { return "" }})
	coloured.terminal = true
	for _, text := range []string{"a", "two\nlines", "\ttab and  spaces ", ""} {
		want := "[-" + text + "-]"
		if got := markRemovedOrAdded(plain.newPrinter(nil), "removed", text); got != want {
			t.Errorf("%q", got)
		}
		if got := markRemovedOrAdded(coloured.newPrinter(nil), "removed", text); toPrintable(got) != want || got == want {
			t.Errorf("%q is marked %q", text, got)
		}
	}
	if got := markRemovedOrAdded(plain.newPrinter(nil), "same", "x"); got != "x" {
		t.Errorf("%q", got)
	}
}

func TestShortened(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 300) + strings.Repeat("ü", 300)
	if got := elideMiddle(long, true, true); len(got) > 2*unchangedContextBytes+5 || !strings.HasPrefix(got, "aaa") || !strings.HasSuffix(got, "ü") {
		t.Errorf("%q", got)
	}
	if got := elideMiddle(long, false, true); !strings.HasPrefix(got, " … ü") {
		t.Errorf("%q", got)
	}
	if got := elideMiddle("short", true, true); got != "short" {
		t.Errorf("%q", got)
	}
}

// Escape sequences hide nothing from a user who decides about a definition.
func TestEscapesAreShown(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`"\u0049gnore \u202e"`:                          "Ignore <U+202E>",
		`{"a":"\u0049gnore\u202e \"x\" \\u0041 \/ \n"}`: "{\n  \"a\": \"Ignore<U+202E> \\\"x\\\" \\\\u0041 / \\n\"\n}",
		`{"\u0061":[1.0,9007199254740993,"<&>"]}`:       "{\n  \"a\": [\n    1.0,\n    9007199254740993,\n    \"<&>\"\n  ]\n}",
		`no "JSON`:                    `no "JSON`,
		`{"a":"\ud83d\ude00 \ud800"}`: "{\n  \"a\": \"😀 \ufffd\"\n}",
	} {
		if got := formatVisibleJSON(json.RawMessage(raw)); got != want {
			t.Errorf("%s gives\n%q, want\n%q", raw, got, want)
		}
	}
}

// A definition is shown in full before its approval. Definitions that are already approved are only counted.
func TestApprovalShowsPendingDefinitions(t *testing.T) {
	t.Parallel()
	v := ops.ServerReview{Name: "s", Stage: ops.StageApproved, Instructions: "These are approved.", TotalOffers: 2}
	for i := range 40 {
		v.Tools = append(v.Tools, ops.ReviewedTool{Tool: fmt.Sprintf("old_%d", i), Definition: json.RawMessage(`{"name":"old","description":"An approved tool."}`)})
	}
	waiting := ops.ReviewedOffer{Kind: tool.KindPrompt, Name: "fresh", Definition: json.RawMessage(`{"name":"fresh","description":"A new prompt."}`)}
	waiting.Reason = approval.New
	v.Offers = []ops.ReviewedOffer{waiting, {Kind: tool.KindPrompt, Name: "older", Definition: json.RawMessage(`{"name":"older"}`)}}
	var out bytes.Buffer
	writeWaitingPartOfReview(newInvocation(Deps{Getenv: func(string) string { return "" }}).newPrinter(&out), v)
	got := out.String()
	if !strings.Contains(got, "A new prompt.") || !strings.Contains(got, "Not shown: 41 definitions (approved already)") || strings.Contains(got, "old_") || strings.Contains(got, "These are approved.") || strings.Contains(got, "1 more") {
		t.Error(got)
	}
	if lines := strings.Count(got, "\n"); lines > 40 {
		t.Errorf("%d lines:\n%s", lines, got)
	}
}
