package e2e

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestDemoOnce(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(binary, "demo", "--once", "--listen", "127.0.0.1:0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"notes:list_notes", "Invented weather for Lisbon", `Wrote "trip".`, `Deleted "old-draft".`,
		"✗ Tool 'notes:delete_note' is marked destructive by server, use call_tool_destructive instead of call_tool_read",
		"✗ Tool 'shifty:add_numbers' cannot be called: its status is pending_approval.",
		"$ mcpproxy tools diff shifty:add_numbers", "readOnlyHint     [-true-]{+false+}", "Add two numbers{+, and forget the older ones+}.",
		"$ mcpproxy tools approve shifty:add_numbers --fingerprint ", "Approved shifty:add_numbers.", "approve_tool",
		"○ read", "✎ write", "⚠ destr", "blocked", "success",
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("%q is not in the output:\n%s", want, out)
		}
	}
}

var exported = regexp.MustCompile(`export MCPPROXY_CONFIG=(\S+) MCPPROXY_DATA_DIR=(\S+) PATH="([^:]+):`)

// The demo keeps running, and the commands that it prints work in a second terminal.
func TestDemoStaysUp(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(binary, "demo", "--listen", "127.0.0.1:0")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	lines := bufio.NewScanner(io.TeeReader(stdout, &printed))
	for lines.Scan() && !strings.Contains(lines.Text(), "Ctrl-C ends the demo") {
	}
	found := exported.FindStringSubmatch(printed.String())
	if found == nil {
		t.Fatalf("no command to paste in:\n%s", printed.String())
	}
	dataDir := found[2]
	run := func(wantCode int, want, command string) {
		t.Helper()
		c := exec.Command("sh", "-c", command)
		c.Env = append(os.Environ(), "MCPPROXY_CONFIG="+found[1], "MCPPROXY_DATA_DIR="+dataDir, "PATH="+found[3]+":"+os.Getenv("PATH"))
		out, _ := c.CombinedOutput() // the exit code is checked
		if code := c.ProcessState.ExitCode(); code != wantCode || !strings.Contains(string(out), want) {
			t.Errorf("%s: exit code %d, want %d\n%s", command, code, wantCode, out)
		}
	}
	run(0, "groceries", "mcpproxy call tool-read notes:list_notes")
	run(3, "Error: Tool 'notes:delete_note' is marked destructive by server, use call_tool_destructive instead of call_tool_read", `mcpproxy call tool-read notes:delete_note --args '{"title":"ideas"}'`)
	run(0, `Deleted "ideas".`, `mcpproxy call tool-destructive notes:delete_note --args '{"title":"ideas"}'`)
	run(0, "INTENT", "mcpproxy activity list")
	run(0, "⚠ destr", "mcpproxy activity list --limit 3")

	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, _ = io.Copy(io.Discard, stdout) // Wait must not close it too early
		ended <- cmd.Wait()
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the demo ended with %v", err)
		}
	case <-time.After(patience):
		_ = cmd.Process.Kill() // it does not react
		t.Error("the demo does not end")
	}
	if _, err := os.Stat(dataDir); !os.IsNotExist(err) {
		t.Errorf("the data of the demo is still there: %v", err)
	}
}
