package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/volume"
)

// postgres starts a real PostgreSQL with a table of three rows. It returns the address of the server and its log, which
// contains every statement. It skips the test if PostgreSQL is not installed.
func postgres(t *testing.T) (url, log string) {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/psql")
	if path, err := exec.LookPath("psql"); err == nil && len(found) == 0 {
		found = append(found, path)
	}
	if len(found) == 0 {
		t.Skip("PostgreSQL is not installed")
	}
	bin := filepath.Dir(found[len(found)-1])
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var as *syscall.SysProcAttr
	if os.Getuid() == 0 { // PostgreSQL refuses to run as root
		nobody, err := user.Lookup("nobody")
		if err != nil {
			t.Skip(err)
		}
		uid, _ := strconv.Atoi(nobody.Uid)
		gid, _ := strconv.Atoi(nobody.Gid)
		as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	command := func(name string, args ...string) *exec.Cmd {
		cmd := exec.Command(filepath.Join(bin, name), args...)
		cmd.SysProcAttr, cmd.Dir = as, dir
		return cmd
	}
	data := filepath.Join(dir, "data")
	if out, err := command("initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	address := freeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	log = filepath.Join(dir, "log")
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	server := command("postgres", "-D", data, "-p", port, "-c", "listen_addresses=127.0.0.1", "-k", dir, "-c", "log_statement=all", "-c", "fsync=off")
	server.Stdout, server.Stderr = file, file
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Process.Signal(syscall.SIGINT); _ = server.Wait() })
	url = "postgresql://postgres@" + address + "/postgres"
	eventually(t, "PostgreSQL answers", func() error {
		out, err := exec.Command(filepath.Join(bin, "psql"), url, "-c", "CREATE TABLE IF NOT EXISTS users AS SELECT generate_series(1, 3) AS id").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
	return url, log
}

// TestReadsRunWritesAsk: a user allows plain reads of a database and of a shell to run without asking. Both servers are
// from npm, and the database is real.
func TestReadsRunWritesAsk(t *testing.T) {
	t.Parallel()
	volume.SkipUnlessNightly(t, volume.Peers)
	_, node := peers(t)
	toPostgres, toShell := installed(t, "@modelcontextprotocol", "server-postgres", "dist", "index.js"), installed(t, "mcp-server-commands", "build", "index.js")
	url, log := postgres(t)
	dir := t.TempDir()
	note := filepath.Join(dir, "note.txt")
	if err := os.WriteFile(note, []byte("a note"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(mode string) string {
		return fmt.Sprintf(`{"intent_declaration": {"judge_arguments": %q}, "mcpServers": {
			"pg": {"command": %q, "args": [%q, %q], "lanes": {"query": {"by": "sql", "argument": "$.sql"}}},
			"sh": {"command": %q, "args": [%q], "hint_overrides": {"run_command": {"destructiveHint": true}}, "lanes": {"run_command": {"by": "shell", "argument": "$.command"}}}}}`,
			mode, node, toPostgres, url, node, toShell)
	}
	d := startDaemon(t, file("enforce"))
	d.awaitTools("pg:query", "sh:run_command")
	a := d.legacy()
	arguments := func(tool, member, value string) string {
		args, err := json.Marshal(map[string]any{"name": tool, "args": map[string]string{member: value}})
		if err != nil {
			t.Fatal(err)
		}
		return string(args)
	}
	runs := func(lane, tool, member, value, want string) {
		t.Helper()
		if r := a.call("call_tool_"+lane, arguments(tool, member, value)); r.IsError || !strings.Contains(r.text(), want) {
			t.Errorf("%s in the %s lane: %s", value, lane, r.text())
		}
		if f := d.newest("type=tool_call").Metadata.Decision; f == nil || f.Lane == nil || f.Lane.Operation != lane || !f.Lane.Declared {
			t.Errorf("%s: record: %+v", value, f)
		}
	}
	refused := func(lane, tool, member, value, message, word string) {
		t.Helper()
		r := a.call("call_tool_"+lane, arguments(tool, member, value))
		if !r.IsError || r.refusal(t).Code != "ARGUMENT_MISMATCH" || r.refusal(t).Message != message {
			t.Errorf("%s in the %s lane: %s", value, lane, r.text())
			return
		}
		record := d.newest("type=policy_decision")
		if f := record.Metadata.Decision; f == nil || f.Outcome != activity.Refused || f.Check != "lane" || f.Lane == nil || f.Lane.Word != word || record.Metadata.ErrorCode != "ARGUMENT_MISMATCH" {
			t.Errorf("%s: record: %+v", value, f)
		}
	}

	runs("read", "pg:query", "sql", "SELECT count(*) AS n FROM users", `"n": "3"`)
	refused("read", "pg:query", "sql", "DROP TABLE users", "These arguments make 'pg:query' destructive (DROP TABLE), use call_tool_destructive instead of call_tool_read", "DROP TABLE")
	refused("write", "pg:query", "sql", "SELECT 1; DROP TABLE users", "These arguments make 'pg:query' destructive (DROP TABLE), use call_tool_destructive instead of call_tool_write", "DROP TABLE")
	refused("read", "pg:query", "sql", "WITH gone AS (DELETE FROM users RETURNING id) SELECT * FROM gone", "These arguments make 'pg:query' destructive (DELETE FROM), use call_tool_destructive instead of call_tool_read", "DELETE FROM")
	runs("read", "pg:query", "sql", "SELECT count(*) AS n FROM users", `"n": "3"`)

	runs("read", "sh:run_command", "command", "cat "+note, "a note")
	refused("read", "sh:run_command", "command", "rm "+note, "These arguments make 'sh:run_command' destructive (rm), use call_tool_destructive instead of call_tool_read", "rm")
	refused("read", "sh:run_command", "command", "cat "+note+" > copy.txt", "These arguments make 'sh:run_command' write (> copy.txt), use call_tool_write instead of call_tool_read", "> copy.txt")
	if _, err := os.Stat(note); err != nil {
		t.Error(err)
	}
	runs("destructive", "sh:run_command", "command", "rm "+note, "")
	if _, err := os.Stat(note); err == nil {
		t.Error("the call in the correct lane did not run")
	}

	// The database has received no statement that was refused.
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(text); strings.Contains(s, "DROP") || strings.Contains(s, "DELETE") || !strings.Contains(s, "SELECT count(*) AS n") {
		t.Errorf("the database received: %s", s)
	}

	// The same by the tool's own name on /mcp/all and on the server's endpoint.
	for _, at := range []string{"/mcp/all", "/mcp/servers/pg"} {
		name := map[string]string{"/mcp/all": "pg__query", "/mcp/servers/pg": "query"}[at]
		if d.callAt(at, name, `{"sql":"SELECT 1 AS one"}`) {
			t.Errorf("%s: a SELECT is refused", at)
		}
	}

	// `can` predicts a call, and `policy try` applies another configuration to the calls above.
	status, body := d.rest("POST", "/can", `{"who":"claude-code","name":"pg:query","args":{"sql":"DROP TABLE users"}}`)
	if status != http.StatusOK || !strings.Contains(string(body), `"check":"lane"`) || !strings.Contains(string(body), "The lanes rule of the server applies. By its arguments") {
		t.Errorf("can: %d %s", status, body)
	}
	other := filepath.Join(dir, "other.json")
	if err := os.WriteFile(other, []byte(file("off")), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, _ := d.cli("policy", "try", other, "-o", "json")
	var would tried
	if err := json.Unmarshal([]byte(out), &would); err != nil || code != 0 || would.Allowed != 3 {
		t.Errorf("policy try: %d, %v, %s", code, err, out)
	}

	// An agent sees which argument determines the lane.
	if r := a.call("retrieve_tools", `{"query":"run a sql query"}`); !strings.Contains(r.text(), `"lane_by":"$.sql (sql)"`) {
		t.Errorf("retrieve_tools: %s", r.text())
	}
}
