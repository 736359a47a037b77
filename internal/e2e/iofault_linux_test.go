package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// ioErrors makes every read and write of the database's files fail with EIO in the running daemon, until the returned
// function is called. It needs strace and the right to trace. Without them the test is skipped, or fails in CI.
func (d *daemon) ioErrors(calls string) (stop func()) {
	d.t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		cannot(d.t, "strace is not installed")
	}
	args := []string{"-f", "-p", strconv.Itoa(d.cmd.Process.Pid), "-o", "/dev/null",
		"-e", "trace=" + calls, "-e", "inject=" + calls + ":error=EIO"}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		args = append(args, "-P", d.database()+suffix)
	}
	cmd := exec.Command(strace, args...)
	said, err := cmd.StderrPipe()
	if err != nil {
		d.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for attached := false; !attached; {
		if !lines.Scan() {
			cannot(d.t, "strace cannot attach: "+cmd.Wait().Error())
		}
		if strings.Contains(lines.Text(), "Operation not permitted") {
			_ = cmd.Wait() // it has already failed
			cannot(d.t, lines.Text())
		}
		attached = strings.Contains(lines.Text(), "attached")
	}
	go func() {
		for lines.Scan() { // discard the lines about new threads
		}
	}()
	return func() {
		d.t.Helper()
		if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
			d.t.Fatal(err)
		}
		_ = cmd.Wait() // the signal ends it
	}
}

// cannot skips a test that this machine does not support, or fails it in CI.
func cannot(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(why)
	}
	t.Skip(why)
}
