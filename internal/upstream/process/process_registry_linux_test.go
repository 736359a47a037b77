package process

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startOrphan starts a shell and kills only the shell, so that its child stays, as after a kill of the daemon. It
// returns the child's process ID.
func startOrphan(t *testing.T, r *processRegistry, script string) int {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(os.Environ(), r.environMark())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r.add(cmd.Process)
	line, err := bufio.NewReader(out).ReadString('\n')
	pid, _ := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pid <= 1 {
		t.Fatalf("%q %v", line, err)
	}
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return pid
}

func lives(pid int) bool { _, ok := readProcessIdentity(pid); return ok }

// TestLeftoverProcessesAreEnded: processes of an earlier run are ended, however they were started. Processes of another data
// directory, and other processes with a reused id, are not.
func TestLeftoverProcessesAreEnded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "processes")
	r := newProcessRegistry(dir)
	const sleeper = "trap '' TERM; sleep 600 & echo $!; wait"
	left := map[string]int{
		"a child":                     startOrphan(t, r, "sleep 600 & echo $!; wait"),
		"that ignores SIGTERM":        startOrphan(t, r, sleeper),
		"in a session of its own":     startOrphan(t, r, "setsid sleep 600 & echo $!; wait"),
		"without the mark":            startOrphan(t, r, "env -i /bin/sleep 600 & echo $!; wait"),
		"that left its working place": startOrphan(t, r, "cd /; nohup sleep 600 >/dev/null 2>&1 & echo $!; wait"),
	}
	other := newProcessRegistry(filepath.Join(t.TempDir(), "other"))
	stranger := startOrphan(t, other, sleeper)
	// The number now belongs to another process.
	us, ok := readProcessIdentity(stranger)
	if !ok {
		t.Fatal("it does not run")
	}
	for pid, started := range map[int]uint64{us.group: us.started + 1, os.Getpid(): 1} {
		if err := os.WriteFile(r.recordPath(pid), fmt.Appendf(nil, "%d %d %s", started, us.session, bootID()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "77"), []byte("1 1 another-boot"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := 0
	NewLauncher(dir, func(n int) { ended = n }).Close()
	if ended != len(left) {
		t.Errorf("%d were ended", ended)
	}
	for how, pid := range left {
		if lives(pid) {
			t.Errorf("%s: %d lives", how, pid)
		}
	}
	if !lives(stranger) {
		t.Error("another caller's process was ended")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 { // the mark
		t.Errorf("left: %v %v", entries, err)
	}
}

// TestCopiedDirectory: a copy of the data directory ends nothing of the original.
func TestCopiedDirectory(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	r := newProcessRegistry(from)
	pid := startOrphan(t, r, "sleep 600 & echo $!; wait")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	if n := newProcessRegistry(to).endLeftovers(); n != 0 || !lives(pid) {
		t.Errorf("%d were ended", n)
	}
	if n := newProcessRegistry(from).endLeftovers(); n != 1 || lives(pid) {
		t.Errorf("%d were ended", n)
	}
}

// TestRosterForgets: a stopped process leaves no entry.
func TestRosterForgets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "processes")
	l := NewLauncher(dir, func(int) {})
	defer l.Close()
	p, err := Start(Command{Name: "/bin/cat"}, l)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.registry.recordPath(p.PID())); err != nil {
		t.Error(err)
	}
	p.CopyStderr(NewLog("", "s", Masker{}))
	p.Stop(nil, time.Minute, func() { p.Stdin.Close() })
	p.Stdout.Close()
	if _, err := os.Stat(l.registry.recordPath(p.PID())); !os.IsNotExist(err) {
		t.Error(err)
	}
}
