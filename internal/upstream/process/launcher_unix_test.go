//go:build unix

package process_test

import (
	"bufio"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcpproxy/internal/upstream/process"
)

// TestKill checks that a process that is installing and ignores every request to end is killed at once with its
// children, and that none starts after that.
func TestKill(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip(err)
	}
	launch := process.NewLauncher("", nil)
	defer launch.Close()
	command := process.Command{Name: sh, Args: []string{"-c", `trap "" TERM INT HUP; sh -c 'trap "" TERM; echo $$; sleep 600 & wait'`}, Installs: true}
	p, err := process.Start(command, launch)
	if err != nil {
		t.Fatal(err)
	}
	p.LetLeftoversFinish(true)
	line, err := bufio.NewReader(p.Stdout).ReadString('\n')
	child, _ := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || child == 0 {
		t.Fatalf("%q, %v", line, err)
	}
	launch.KillAll()
	select {
	case <-p.Exited():
	case <-time.After(time.Minute):
		t.Fatal("it still runs")
	}
	p.Stop(nil, process.RollbackGrace, func() { p.Stdin.Close() })
	if err := syscall.Kill(-p.PID(), 0); err == nil {
		t.Errorf("something of the group of %d is left", p.PID())
	}
	late, err := process.Start(process.Command{Name: sh, Args: []string{"-c", "sleep 600"}}, launch)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-late.Exited():
	case <-time.After(time.Minute):
		t.Error("one that was started later runs")
	}
	late.Stop(nil, 0, func() { late.Stdin.Close() })
}
