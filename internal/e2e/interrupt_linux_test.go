package e2e

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpproxy/internal/testutil/mcptest"
)

// endless writes a package manager that installs forever and ignores SIGTERM. A stop would wait for it for a minute and
// a half.
func endless(t *testing.T) (npx, began string) {
	t.Helper()
	dir := t.TempDir()
	npx, began = filepath.Join(dir, "npx"), filepath.Join(dir, "began")
	script := "#!/bin/sh\ntrap '' TERM INT\necho $$ > '" + began + "'\nwhile :; do sleep 0.05; done\n"
	if err := mcptest.WriteProgram(npx, []byte(script)); err != nil {
		t.Fatal(err)
	}
	return npx, began
}

// begin starts a program and collects its output.
func begin(t *testing.T, cmd *exec.Cmd, from io.Reader) (out *output, ended <-chan error) {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	out = &output{}
	done := make(chan error, 1)
	go func() { _, _ = io.Copy(out, from) }()
	go func() { done <- cmd.Wait() }()
	return out, done
}

// says waits until a program has printed all given words.
func (o *output) says(t *testing.T, words ...string) {
	t.Helper()
	eventually(t, "it says "+strings.Join(words, ", "), func() error {
		for _, w := range words {
			if text := o.String(); !strings.Contains(text, w) {
				return errors.New(text)
			}
		}
		return nil
	})
}

// interruptTwice sends SIGINT, waits until the output names the process that the stop waits for, and sends SIGINT
// again. The program must end within a minute, which is less than it would otherwise wait.
func interruptTwice(t *testing.T, cmd *exec.Cmd, out *output, ended <-chan error, began string) {
	t.Helper()
	eventually(t, "the installation runs", func() error {
		text, err := os.ReadFile(began)
		if err == nil && len(text) == 0 {
			err = errors.New("it is about to")
		}
		return err
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	out.says(t, " for the package managers of slow", "Ctrl-C again")
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("it did not end cleanly: %v\n%s", err, out)
		}
	case <-time.After(time.Minute):
		t.Errorf("it does not end after the second interrupt:\n%s", out)
	}
	pid, _ := os.ReadFile(began)
	eventually(t, "the package manager has ended", func() error {
		if state, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat"); err == nil && !strings.Contains(string(state), ") Z ") {
			return errors.New(string(state))
		}
		return nil
	})
}

// TestTheSecondInterruptEndsTheDaemon: after a second interrupt, the daemon does not wait for a package manager's
// installation.
func TestTheSecondInterruptEndsTheDaemon(t *testing.T) {
	t.Parallel()
	npx, began := endless(t)
	d := &daemon{t: t, dir: t.TempDir(), address: freeAddress(t)}
	d.writeConfig(`{"mcpServers": {"slow": {"command": "` + npx + `", "args": ["-y", "x"]}}}`)
	user, program := openTerminal(t)
	cmd := exec.Command(binary, "serve", "--config", d.configPath(), "--data-dir", d.dataDir(), "--listen", d.address)
	cmd.Env = d.environ("TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = program, program, program
	out, ended := begin(t, cmd, user)
	_ = program.Close() // the process has its own copy
	interruptTwice(t, cmd, out, ended, began)
}

// TestTheSecondInterruptEndsTheDemo: the same with a server that the user has added to the demo.
func TestTheSecondInterruptEndsTheDemo(t *testing.T) {
	t.Parallel()
	npx, began := endless(t)
	cmd := exec.Command(binary, "demo", "--listen", "127.0.0.1:0")
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = write, write
	out, ended := begin(t, cmd, read)
	_ = write.Close() // the process has its own copy
	out.says(t, "Ctrl-C ends the demo")
	found := exported.FindStringSubmatch(out.String())
	if found == nil {
		t.Fatalf("no command to paste in:\n%s", out)
	}
	add := exec.Command(binary, "upstream", "add", "slow", "--config", found[1], "--data-dir", found[2], "--env", "npm_config_registry=http://"+freeAddress(t), "--", npx, "-y", "x")
	if err := add.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = add.Process.Kill()
		_ = add.Wait()
	})
	interruptTwice(t, cmd, out, ended, began)
	if _, err := os.Stat(found[2]); err == nil {
		t.Errorf("the data of the demo is left in %s", found[2])
	}
}
