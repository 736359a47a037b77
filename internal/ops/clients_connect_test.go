package ops_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/clients"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// write creates a file in the account's home directory.
func write(t *testing.T, a *ops.LocalClients, name, text string, mode os.FileMode) string {
	t.Helper()
	path := a.Env.HomePath(filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// connected connects a client and returns the change and the text of its file. The default surface is search.
func connected(t *testing.T, a *ops.LocalClients, client string, w ops.ConnectOptions) (ops.FileChange, string) {
	t.Helper()
	w.Surface = cmp.Or(w.Surface, "search")
	plan, err := a.PlanConnect(client, w)
	if err != nil {
		t.Fatal(err)
	}
	done, err := a.ApplyPlan(t.Context(), ops.Caller{}, plan)
	if err != nil {
		t.Fatal(err)
	}
	return done, read(t, done.Path)
}

// wants checks the code and the text of an error.
func wants(t *testing.T, err error, code problem.Code, says string) {
	t.Helper()
	if p := problem.From(err); err == nil || p.Code != code || !strings.Contains(p.Message+" "+p.Hint, says) {
		t.Errorf("%v, want %s with %q", err, code, says)
	}
}

// Connecting keeps the members of an existing entry that the user wrote, except the connection settings.
func TestAnEntryIsMended(t *testing.T) {
	for name, c := range map[string]struct{ client, file, text, want, warns string }{
		"it was switched off": {"cursor", ".cursor/mcp.json", `{"mcpServers": {"mcpproxy": {"url": "http://127.0.0.1:8080/mcp", "disabled": true}}}`,
			`{"mcpServers": {"mcpproxy": {"url": "http://127.0.0.1:8080/mcp"}}}`, ""},
		"another port, and its key": {"kiro", ".kiro/settings/mcp.json", `{"mcpServers": {"mcpproxy": {"url": "http://127.0.0.1:9/mcp", "headers": {"X-API-Key": "k"}, "autoApprove": ["read_result"]}}}`,
			`{"mcpServers": {"mcpproxy": {"url": "http://127.0.0.1:8080/mcp", "autoApprove": ["read_result"]}}}`, "leads to http://127.0.0.1:9/mcp now"},
		"a command becomes an address": {"cursor", ".cursor/mcp.json", `{"mcpServers": {"all": {"command": "/old/mcpproxy", "args": ["stdio"], "env": {"A": "b"}}}}`,
			`{"mcpServers": {"all": {"env": {"A": "b"}, "url": "http://127.0.0.1:8080/mcp"}}}`, ""},
		"permissions of Codex": {"codex", ".codex/config.toml", "[mcp_servers.mcpproxy]\nurl = \"http://127.0.0.1:9/mcp\"\ndefault_tools_approval_mode = \"writes\"\n\n[mcp_servers.mcpproxy.tools.read_result]\napproval_mode = \"approve\"\n",
			"[mcp_servers.mcpproxy]\nurl = \"http://127.0.0.1:8080/mcp\"\ndefault_tools_approval_mode = \"writes\"\n\n[mcp_servers.mcpproxy.tools.read_result]\napproval_mode = \"approve\"\n", "leads to"},
		"opencode 2": {"opencode", ".config/opencode/opencode.jsonc", `{"mcp": {"servers": {}}}`,
			`{"mcp": {"servers": {"mcpproxy": {"type": "remote", "url": "http://127.0.0.1:8080/mcp", "codemode": false}}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := account(t)
			write(t, a, c.file, c.text, 0o600)
			done, text := connected(t, a, c.client, ops.ConnectOptions{})
			if text != c.want || !done.Written || (c.warns == "") != (len(done.Warnings) == 0) || !strings.Contains(strings.Join(done.Warnings, " "), c.warns) {
				t.Errorf("%+v\n%s", done, text)
			}
		})
	}
}

func TestProfiles(t *testing.T) {
	a := account(t)
	if _, text := connected(t, a, "cursor", ops.ConnectOptions{Profile: "research"}); !strings.Contains(text, `"http://127.0.0.1:8080/mcp/p/research"`) {
		t.Error(text)
	}
	if _, text := connected(t, a, "claude-desktop", ops.ConnectOptions{Profile: "research"}); !strings.Contains(text, `["stdio", "--profile", "research"]`) {
		t.Error(text)
	}
	_, err := a.PlanConnect("cursor", ops.ConnectOptions{Profile: "none"})
	wants(t, err, problem.NotFound, "mcpproxy profile list")
}

// tokens is a TokenIssuer that records the valid tokens.
type tokens struct{ good []string }

func (k *tokens) CreateToken(_ context.Context, _ ops.Caller, in ops.CreateTokenRequest) (ops.CreatedToken, error) {
	if slices.Contains(k.good, in.Name) {
		return ops.CreatedToken{}, problem.New(problem.Conflict, "taken", "")
	}
	k.good = append(k.good, in.Name)
	return ops.CreatedToken{Token: "mcpp_t_" + strings.Repeat("5a", 32)}, nil
}

func (k *tokens) RevokeToken(_ context.Context, _ ops.Caller, in ops.TokenRef) (ops.RevokedToken, error) {
	k.good = slices.DeleteFunc(k.good, func(n string) bool { return n == in.Name })
	return ops.RevokedToken{Revoked: in.Name}, nil
}

// A token is written only to a file that no other user can read. It is never displayed, and it is revoked if it cannot
// be written.
func TestTokens(t *testing.T) {
	a, made := account(t), &tokens{}
	_, err := a.PlanConnect("cursor", ops.ConnectOptions{Surface: "search", Token: "one"})
	wants(t, err, problem.DaemonNotRunning, "mcpproxy serve")
	a.Tokens = made
	path := write(t, a, ".cursor/mcp.json", `{}`, 0o644)
	_, err = a.PlanConnect("cursor", ops.ConnectOptions{Surface: "search", Token: "one"})
	wants(t, err, problem.Conflict, "chmod 600")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	plan, err := a.PlanConnect("cursor", ops.ConnectOptions{Surface: "search", Token: "one"})
	if err != nil || len(made.good) != 0 {
		t.Fatal(err, made.good)
	}
	if err := os.WriteFile(path, []byte(`{"meanwhile": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = a.ApplyPlan(t.Context(), ops.Caller{}, plan)
	wants(t, err, problem.Conflict, "was changed in the meantime")
	if len(made.good) != 0 {
		t.Error("the token is still valid, although the file was not written")
	}
	done, text := connected(t, a, "cursor", ops.ConnectOptions{Token: "one"})
	if !strings.Contains(text, `"Authorization": "Bearer mcpp_t_5a5a`) || strings.Contains(done.Difference, "5a5a") || len(made.good) != 1 {
		t.Errorf("%s\n%s", text, done.Difference)
	}
	if _, text := connected(t, a, "goose", ops.ConnectOptions{Token: "two"}); !strings.Contains(text, "Authorization: Bearer mcpp_t_5a5a") {
		t.Error(text)
	}
	if _, text := connected(t, a, "claude-desktop", ops.ConnectOptions{Token: "three"}); !strings.Contains(text, `"MCPPROXY_TOKEN": "mcpp_t_5a5a`) {
		t.Error(text)
	}
}

// A client's own command is run. If it fails or makes another change, a warning reports this and the file is edited
// instead.
func TestOwnCommands(t *testing.T) {
	const ours = `{"mcpServers": {"mcpproxy": {"type": "http", "url": "http://127.0.0.1:8080/mcp", "alwaysLoad": true}}, "other": 1}`
	for name, c := range map[string]struct {
		writes string // "" if the command writes nothing
		err    error
		warns  string
	}{
		"it does it":               {ours, nil, ""},
		"it does it and complains": {ours, errors.New("exit status 1"), ""},
		"it fails":                 {"", errors.New("exit status 1"), "said (exit status 1)"},
		"it leaves out a member":   {`{"mcpServers": {"mcpproxy": {"type": "http", "url": "http://127.0.0.1:8080/mcp"}}, "other": 1}`, nil, "it made a different change"},
		"it does something else":   {`{"mcpServers": {"mcpproxy": {"type": "sse", "url": "http://127.0.0.1:9/sse"}}, "other": 1}`, nil, "it made a different change"},
	} {
		t.Run(name, func(t *testing.T) {
			a := account(t)
			path := write(t, a, ".claude.json", `{"other": 1}`, 0o600)
			a.Env.Program = func(name string) string { return map[string]string{"claude": "/bin/claude"}[name] }
			var ran []string
			a.Run = func(_ context.Context, argv []string) (string, error) {
				ran = argv
				if c.writes != "" {
					write(t, a, ".claude.json", c.writes, 0o600)
				}
				return "said", c.err
			}
			done, text := connected(t, a, "claude-code", ops.ConnectOptions{})
			if len(ran) == 0 || !done.Written || !strings.Contains(text, `"http://127.0.0.1:8080/mcp"`) || !strings.Contains(text, `"other": 1`) ||
				(c.warns == "") != (len(done.Warnings) == 0) || !strings.Contains(strings.Join(done.Warnings, " "), c.warns) || (done.Command == nil) != (c.warns != "") {
				t.Errorf("%v: %+v\n%s", ran, done, text)
			}
			if _, err := a.UndoLastConnect("claude-code"); err != nil {
				t.Fatal(err)
			}
			same(t, path, `{"other": 1}`, 0o600)
			_, err := a.UndoLastConnect("claude-code")
			wants(t, err, problem.NotFound, "No change")
		})
	}
}

// A client's command may write the entry in another form than MCPProxy does.
func TestOwnCommandWithAnotherSpelling(t *testing.T) {
	a := account(t)
	path := write(t, a, ".gemini/settings.json", `{"theme": "Default"}`, 0o600)
	a.Env.Program = func(name string) string { return map[string]string{"gemini": "/bin/gemini"}[name] }
	const written = `{"theme": "Default", "mcpServers": {"mcpproxy": {"url": "http://127.0.0.1:8080/mcp", "type": "http"}}}`
	a.Run = func(context.Context, []string) (string, error) {
		write(t, a, ".gemini/settings.json", written, 0o600)
		return "", nil
	}
	if done, text := connected(t, a, "gemini", ops.ConnectOptions{}); len(done.Warnings) > 0 || text != written {
		t.Errorf("%v, %s", done.Warnings, text)
	}
	if _, err := a.UndoLastConnect("gemini"); err != nil {
		t.Fatal(err)
	}
	same(t, path, `{"theme": "Default"}`, 0o600)
}

// An undo in a changed file removes only the entry. Other conflicts return an error with a hint.
func TestUndo(t *testing.T) {
	a := account(t)
	path := write(t, a, ".cursor/mcp.json", `{}`, 0o600)
	connected(t, a, "cursor", ops.ConnectOptions{})
	if err := os.WriteFile(path, []byte(strings.Replace(read(t, path), "{", "{ ", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if back, err := a.UndoLastConnect("cursor"); err != nil || len(back) != 1 || !back[0].Partly || strings.Contains(read(t, path), "mcpproxy") || !strings.HasPrefix(read(t, path), "{ ") {
		t.Error(err, back, read(t, path))
	}
	_, err := a.PlanDisconnect("cursor")
	wants(t, err, problem.NotFound, "mcpproxy connect cursor")
	connected(t, a, "cursor", ops.ConnectOptions{})
	write(t, a, ".cursor/mcp.json", "{ broken", 0o600)
	_, err = a.UndoLastConnect("cursor")
	wants(t, err, problem.InvalidConfig, "line 1")
	write(t, a, ".cursor/mcp.json", `{"mcpServers": {"mcpproxy": {"url": "http://127.0.0.1:8080/mcp", "headers": {}}}, "theirs": 1}`, 0o600)
	plan, err := a.PlanDisconnect("cursor")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.ApplyPlan(t.Context(), ops.Caller{}, plan); err != nil || strings.Contains(read(t, path), "mcpproxy") {
		t.Error(err, read(t, path))
	}
	all, err := a.PastChanges()
	if err != nil || len(all) != 3 || all[0].What != "disconnect" || !all[0].Undoable || all[1].Undoable || all[1].Client != "cursor" {
		t.Errorf("%+v, %v", all, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = a.UndoLastConnect("cursor")
	wants(t, err, problem.Conflict, "was changed since")
	_, err = a.UndoChange("../../etc/passwd")
	wants(t, err, problem.NotFound, "")
	_, err = a.UndoLastConnect("nobody")
	wants(t, err, problem.NotFound, "Known are")
}

// If the client has written its file since the connect, an undo keeps the client's text and removes MCPProxy and its
// rules.
func TestUndoWithRulesInAChangedFile(t *testing.T) {
	for client, c := range map[string]struct{ file, before, theirs, want string }{
		"codex": {".codex/config.toml", "model = \"o3\"\n", "\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n", "model = \"o3\"\n\n[projects.\"/p\"]\ntrust_level = \"trusted\"\n"},
		"opencode": {".config/opencode/opencode.json", "{\n  \"mcp\": {},\n  \"permission\": {\"bash\": \"ask\"}\n}\n", "// theirs\n",
			"{\n  \"mcp\": {},\n  \"permission\": {\"bash\": \"ask\"}\n}\n// theirs\n"},
	} {
		t.Run(client, func(t *testing.T) {
			a := account(t)
			a.Tools = func() []permission.ProxyTool { return []permission.ProxyTool{{Name: "call_tool_write"}} }
			path := write(t, a, c.file, c.before, 0o600)
			connected(t, a, client, ops.ConnectOptions{})
			if out, err := a.WriteRules(client, false); err != nil || !out.Written {
				t.Fatal(out, err)
			}
			write(t, a, c.file, read(t, path)+c.theirs, 0o600)
			back, err := a.UndoLastConnect(client)
			if err != nil || len(back) != 2 || back[0].What != "permissions" || !back[0].Partly || !back[1].Partly {
				t.Errorf("%+v, %v", back, err)
			}
			if got := read(t, path); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(c.want), " ") {
				t.Errorf("the file is\n%s", got)
			}
		})
	}
}

func TestList(t *testing.T) {
	a := account(t)
	write(t, a, ".cursor/mcp.json", `{"mcpServers": {"mcpproxy": {"url": "http://127.0.0.1:9/mcp"}}}`, 0o600)
	write(t, a, ".kiro/settings/mcp.json", `{`, 0o600)
	write(t, a, ".lmstudio/mcp.json", `{"mcpServers": {"proxy": {"command": "/gone/mcpproxy", "args": ["stdio"]}}}`, 0o600)
	write(t, a, ".codeium/windsurf/mcp_config.json", `{"mcpServers": {"mcpproxy": {"serverUrl": "http://localhost:8080/mcp/p/research"}}}`, 0o600)
	list, err := a.ListClients()
	if err != nil || len(list.Clients) != 15 {
		t.Fatal(err, len(list.Clients))
	}
	by := map[string]ops.ClientView{}
	for _, v := range list.Clients {
		by[v.ID] = v
		if !strings.Contains(v.Entry.Text, "mcpproxy") || v.Found != (v.Permissions != nil) {
			t.Errorf("%s: %+v", v.ID, v)
		}
	}
	if v := by["cursor"]; !v.Connected || !v.Foreign || v.LeadsTo != "http://127.0.0.1:9/mcp" {
		t.Errorf("%+v", v)
	}
	if v := by["kiro"]; v.Connected || len(v.Broken) != 1 || !strings.Contains(v.Broken[0], "line 1") {
		t.Errorf("%+v", v)
	}
	if v := by["lmstudio"]; !v.Connected || v.Foreign || v.Missing != "/gone/mcpproxy" || v.Server != "proxy" {
		t.Errorf("%+v", v)
	}
	if v := by["windsurf"]; !v.Connected || v.Foreign || v.Missing != "" {
		t.Errorf("%+v", v)
	}
	if v := by["zed"]; v.Found || v.Connected {
		t.Errorf("%+v", v)
	}
}

func TestBase(t *testing.T) {
	for address, want := range map[string]string{"http://127.0.0.1:8080/mcp": "http://127.0.0.1:8080", "http://0.0.0.0:80/mcp": "http://127.0.0.1:80", "https://[::]:82/mcp": "https://127.0.0.1:82", "http://[::1]:83/mcp": "http://[::1]:83", "https://example.com/a/mcp": "https://example.com/a", "": ""} {
		if got := ops.ClientBaseURL([]ops.Surface{{Name: "mcp", Address: address}}); got != want {
			t.Errorf("%s: %s, want %s", address, got, want)
		}
	}
}

// TestEntriesOfProjects checks the warnings of entries that take precedence over the written one.
func TestEntriesOfProjects(t *testing.T) {
	a := account(t)
	a.Env.Dir = a.Env.HomePath("project")
	write(t, a, ".claude.json", `{"projects": {"`+a.Env.Dir+`": {"mcpServers": {"mcpproxy": {"type": "http", "url": "http://127.0.0.1:9/mcp"}}}}}`, 0o600)
	write(t, a, "project/.mcp.json", `{"mcpServers": {"mcpproxy": {"command": "x"}}}`, 0o600)
	plan, err := a.PlanConnect("claude", ops.ConnectOptions{Surface: "search"})
	if err != nil || len(plan.Warnings) != 2 || !strings.Contains(plan.Warnings[0], ".mcp.json") || !strings.Contains(plan.Warnings[1], ".claude.json") {
		t.Errorf("%q, %v", plan.Warnings, err)
	}
	a = account(t)
	a.Env.Dir = a.Env.HomePath() // its .cursor/mcp.json is the user's
	connected(t, a, "cursor", ops.ConnectOptions{})
	if plan, err := a.PlanConnect("cursor", ops.ConnectOptions{Surface: "search"}); err != nil || len(plan.Warnings) > 0 {
		t.Errorf("in the home directory: %q, %v", plan.Warnings, err)
	}
}

// Disconnecting removes everything that connect and permissions wrote, including rules, empty objects and files. Its undo
// restores all of it.
func TestDisconnectLeavesNothing(t *testing.T) {
	for _, client := range clients.ClientIDs() {
		t.Run(client, func(t *testing.T) {
			a := account(t)
			a.Tools = func() []permission.ProxyTool {
				return []permission.ProxyTool{{Name: "retrieve_tools", Hints: tool.Hints{ReadOnly: tool.True}}, {Name: "call_tool_write"}}
			}
			done, _ := connected(t, a, client, ops.ConnectOptions{})
			rules, err := a.WriteRules(client, false)
			if err != nil && problem.From(err).Code != problem.NotFound {
				t.Fatal(err)
			}
			was := filesIn(t, a.Env.Home)
			plan, err := a.PlanDisconnect(client)
			if err != nil {
				t.Fatal(err)
			}
			out, err := a.ApplyPlan(t.Context(), ops.Caller{}, plan)
			if err != nil || !out.Written {
				t.Fatal(err, out)
			}
			for _, path := range []string{done.Path, rules.Path} {
				if left, err := os.ReadFile(path); err == nil {
					t.Errorf("%s: %q remains; warnings %q", path, left, out.Warnings)
				}
			}
			if _, err := a.UndoLastConnect(client); err != nil {
				t.Error(err)
			}
			if now := filesIn(t, a.Env.Home); !maps.Equal(now, was) {
				t.Errorf("after the undo, the files are\n%q\nwant\n%q", now, was)
			}
		})
	}
}

// Disconnecting keeps everything that the user wrote before or after connecting.
func TestDisconnectLeavesTheUsers(t *testing.T) {
	for name, c := range map[string]struct{ client, file, servers, rules, before, since, want string }{
		"Claude Code": {"claude-code", ".claude.json", `{"a": 1}`, ".claude/settings.json", `{"permissions": {"allow": ["Bash(ls)"]}}`, `"Bash(ls)"`, `{"permissions": {"allow": ["Bash(ls)", "Bash(pwd)"]}}`},
		"a new file":  {"claude-code", ".claude.json", `{"mcpServers": {}}`, ".claude/settings.json", `{}`, `"mcp__mcpproxy__retrieve_tools"`, `{"permissions": {"allow": ["Bash(pwd)"]}}`},
	} {
		t.Run(name, func(t *testing.T) {
			a := account(t)
			a.Tools = func() []permission.ProxyTool {
				return []permission.ProxyTool{{Name: "retrieve_tools", Hints: tool.Hints{ReadOnly: tool.True}}, {Name: "call_tool_write"}}
			}
			path := write(t, a, c.file, c.servers, 0o600)
			rules := write(t, a, c.rules, c.before, 0o600)
			connected(t, a, c.client, ops.ConnectOptions{})
			if out, err := a.WriteRules(c.client, false); err != nil || !out.Written {
				t.Fatal(out, err)
			}
			now := read(t, rules)
			changed := strings.Replace(now, c.since, c.since+`, "Bash(pwd)"`, 1)
			if changed == now {
				t.Fatalf("no %s in %s", c.since, now)
			}
			write(t, a, c.rules, changed, 0o600)
			plan, err := a.PlanDisconnect(c.client)
			if err != nil {
				t.Fatal(err)
			}
			if out, err := a.ApplyPlan(t.Context(), ops.Caller{}, plan); err != nil || !out.Written {
				t.Fatal(err, out)
			}
			for file, want := range map[string]string{path: c.servers, rules: c.want} {
				if got := strings.Join(strings.Fields(read(t, file)), ""); got != strings.Join(strings.Fields(want), "") {
					t.Errorf("%s is %s, want %s", file, got, want)
				}
			}
		})
	}
}
