package permission_test

import (
	"bytes"
	"flag"
	"fmt"
	"mcpproxy/internal/clients"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/clients/permission"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcpserver"
)

var update = flag.Bool("update", false, "write what is wanted")

// ours returns the definitions of MCPProxy's own tools.
func ours() []permission.ProxyTool {
	return permission.ParseTools(mcpserver.BuiltinDefinitions(config.ManagePropose))
}

// account creates an account with the files of an archive: those under home/, project/ and root/.
func account(t *testing.T, a *txtar.Archive) clients.Env {
	t.Helper()
	dir := t.TempDir()
	e := clients.Env{GOOS: "linux", Home: filepath.Join(dir, "home"), Dir: filepath.Join(dir, "project"), Root: filepath.Join(dir, "root")}
	env := map[string]string{}
	e.Getenv = func(name string) string { return env[name] }
	for _, f := range a.Files {
		if f.Name == "want" {
			continue
		}
		text := strings.ReplaceAll(string(f.Data), "$PROJECT", e.Dir)
		path := filepath.Join(dir, f.Name)
		if f.Name == "env" {
			for line := range strings.Lines(text) {
				name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
				env[name] = strings.ReplaceAll(value, "$DIR", dir)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// TestCheck checks how clients handle each lane, and the reason. Each archive is an account. Its first line is the
// client, and its last file is the expected report.
func TestCheck(t *testing.T) {
	archives, err := filepath.Glob("testdata/check/*.txt")
	if err != nil || len(archives) == 0 {
		t.Fatal("no archives", err)
	}
	for _, path := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			e := account(t, a)
			client, _, _ := strings.Cut(string(a.Comment), ":")
			r, err := permission.CheckClient(e, client, ours())
			if err != nil {
				t.Fatal(err)
			}
			got := []byte(strings.ReplaceAll(shown(r), filepath.Dir(e.Home)+"/", ""))
			want := &a.Files[len(a.Files)-1]
			if want.Name != "want" {
				t.Fatal("the last file of the archive is not want")
			}
			if *update {
				want.Data = got
				if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if !bytes.Equal(got, want.Data) {
				t.Errorf("got\n%s\nwant\n%s", got, want.Data)
			}
		})
	}
}

// shown formats a report as in the archives.
func shown(r permission.Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s connected=%v right=%v\n", r.Server, r.Connected, r.Right)
	for _, l := range r.Lanes {
		mark := "  "
		if !l.Right {
			mark = "! "
		}
		fmt.Fprintf(&b, "%s%s: %s by %s", mark, l.Tool, l.Verdict, l.Rule.Text)
		if l.Rule.Path != "" {
			fmt.Fprintf(&b, " at %s:%d", l.Rule.Path, l.Rule.Line)
		}
		if l.Why != "" {
			fmt.Fprintf(&b, " (%s)", l.Why)
		}
		b.WriteByte('\n')
	}
	for _, i := range r.Ignored {
		fmt.Fprintf(&b, "ignored: %s at %s:%d\n", i.Text, i.Path, i.Line)
	}
	for _, file := range r.Broken {
		fmt.Fprintf(&b, "broken: %s\n", file)
	}
	return b.String()
}

// TestCodexHints checks how Codex handles hints that MCPProxy's own tools do not have.
func TestCodexHints(t *testing.T) {
	const yes, no, unsaid = tool.True, tool.False, tool.Unset
	for _, c := range []struct {
		name         string
		hints        tool.Hints
		auto, writes permission.Verdict
	}{
		{"destructive before read-only", tool.Hints{ReadOnly: yes, Destructive: yes}, permission.Asks, permission.Runs},
		{"read-only", tool.Hints{ReadOnly: yes}, permission.Runs, permission.Runs},
		{"nothing said", tool.Hints{}, permission.Asks, permission.Asks},
		{"neither destructive nor open", tool.Hints{Destructive: no, OpenWorld: no}, permission.Runs, permission.Asks},
		{"not destructive", tool.Hints{Destructive: no, OpenWorld: unsaid}, permission.Asks, permission.Asks},
		{"not open", tool.Hints{Destructive: unsaid, OpenWorld: no}, permission.Asks, permission.Asks},
		{"open", tool.Hints{ReadOnly: no, Destructive: no, OpenWorld: yes}, permission.Asks, permission.Asks},
	} {
		for mode, want := range map[string]permission.Verdict{"auto": c.auto, "writes": c.writes} {
			e := account(t, txtar.Parse([]byte("-- home/.codex/config.toml --\n[mcp_servers.mcpproxy]\ndefault_tools_approval_mode = \""+mode+"\"\n")))
			r, err := permission.CheckClient(e, "codex", []permission.ProxyTool{{Name: "x", Hints: c.hints}})
			if err != nil || r.Lanes[0].Verdict != want {
				t.Errorf("%s in the mode %s: %v, %v, want %s", c.name, mode, r.Lanes, err, want)
			}
		}
	}
}
