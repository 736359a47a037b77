package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// openTerminal returns both ends of a new pseudo-terminal.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	t.Cleanup(func() { _ = person.Close() })
	var number, unlocked int32
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, person.Fd(), request, uintptr(unsafe.Pointer(value))); errno != 0 {
			t.Skipf("no pseudo-terminals here: %v", errno)
		}
	}
	program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	return person, program
}

// onTerminal runs a command in a terminal and types the answer to its prompt. The answer ^C interrupts the command,
// even if it only reports that something is pending.
func (d *daemon) onTerminal(t *testing.T, answer string, args ...string) (code int, screen string) {
	t.Helper()
	person, program := openTerminal(t)
	cmd := exec.Command(binary, append(args, "--config", d.configPath(), "--data-dir", d.dataDir())...)
	cmd.Env = d.environ("TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = program.Close() // the process has its own copy
	hung := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	defer hung.Stop()
	var seen strings.Builder
	var once sync.Once
	buffer := make([]byte, 4096)
	for {
		n, err := person.Read(buffer)
		seen.Write(buffer[:n])
		if strings.Contains(seen.String(), "[y/N] ") || answer == "^C" && strings.Contains(seen.String(), "waits for your review") {
			once.Do(func() {
				if answer == "^C" {
					_ = cmd.Process.Signal(syscall.SIGINT)
					return
				}
				_, _ = io.WriteString(person, answer+"\n")
			})
		}
		if err != nil { // EIO once the process has ended
			break
		}
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), seen.String()
}

// In a terminal the command shows the difference in color and asks for confirmation.
func TestApproveOnATerminal(t *testing.T) {
	t.Parallel()
	const (
		honest  = `{"name":"add","description":"Add two numbers.","inputSchema":{"type":"object"}}`
		shifted = `{"name":"add","description":"Add two \u001b[8mbig\u001b[0m numbers.","inputSchema":{"type":"object"}}`
	)
	u := startUpstream(t, honest)
	d := startDaemon(t, u.config("s", ""))
	d.awaitTools("s:add")
	u.define(shifted)
	if code, _, stderr := d.cli("upstream", "restart", "s"); code != 0 {
		t.Fatal(stderr)
	}
	waits := func() bool { return d.lockedTools()["s:add"] == "pending_approval" }
	for _, c := range []struct {
		answer string
		code   int
	}{{"n", 130}, {"", 130}, {"yess", 130}, {"^C", 130}} {
		code, screen := d.onTerminal(t, c.answer, "tools", "approve", "s:add")
		if code != c.code || !waits() || !strings.Contains(screen, "Approve this definition of s:add? [y/N] ") {
			t.Fatalf("answered %q: code %d\n%s", c.answer, code, screen)
		}
		if !strings.Contains(screen, "\x1b[32m{+<U+001B>[") || strings.Contains(screen, "\x1b[8m") {
			t.Errorf("the difference is not shown as expected in a terminal:\n%q", screen)
		}
	}
	if code, screen := d.onTerminal(t, "y", "tools", "approve", "s:add"); code != 0 || waits() || !strings.Contains(screen, "Approved s:add.") {
		t.Fatalf("code %d\n%s", code, screen)
	}
}

// A user who starts the daemon in a terminal sees plain text instead of a log.
func TestServeOnATerminal(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{"mcpServers": {"q": {"command": "never-started", "quarantined": true}}}`)
	d.stop()
	code, screen := d.onTerminal(t, "^C", "serve", "--listen", "127.0.0.1:0")
	for _, line := range []string{"Address for your MCP clients:", "/mcp", "q waits for your review: mcpproxy upstream approve q", "Press Ctrl-C to stop", "Stopping: "} {
		if !strings.Contains(screen, line) {
			t.Errorf("the output lacks %q", line)
		}
	}
	if code != 0 || strings.Contains(screen, "level=") || strings.Contains(screen, "Welcome") {
		t.Errorf("code %d\n%s", code, screen)
	}
}

// A first start prints a greeting and no warning. If the address is in use, the error names the process.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, `{}`)
	home := t.TempDir()
	serve := func(address string, until string) string {
		person, program := openTerminal(t)
		cmd := exec.Command(binary, "serve", "--listen", address)
		cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MCPPROXY_") }), "HOME="+home)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = program.Close()
		hung := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer hung.Stop()
		var seen strings.Builder
		interrupted := false
		buffer := make([]byte, 4096)
		for {
			n, err := person.Read(buffer)
			if seen.Write(buffer[:n]); !interrupted && strings.Contains(seen.String(), until) {
				interrupted = true // a second ^C would end the daemon immediately
				_ = cmd.Process.Signal(syscall.SIGINT)
			}
			if err != nil {
				_ = cmd.Wait() // the exit code is checked below
				return seen.String()
			}
		}
	}
	screen := serve("127.0.0.1:0", "Ctrl-C")
	if !strings.Contains(screen, "Welcome to MCPProxy") || !strings.Contains(screen, "mcpproxy upstream add") || strings.Contains(screen, "arning") {
		t.Errorf("the first start:\n%s", screen)
	}
	screen = serve(d.address, "\x00")
	if !strings.Contains(screen, "another MCPProxy, with the data directory "+d.dataDir()+", uses the address.") || !strings.Contains(screen, "--listen 127.0.0.1:PORT") {
		t.Errorf("the address is in use:\n%s", screen)
	}
}
