package sandbox

import (
	"errors"
	"os/exec"
	"testing"

	"mcpproxy/internal/upstream/process"
)

// TestGitRuns: git ends with an error if it cannot read the configuration of the system, and many servers run it.
func TestGitRuns(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	s := NewSystem("")
	if gaps := s.NotEnforced(Rules{Mode: Strict}); len(gaps) > 0 {
		t.Skip(gaps)
	}
	c, err := s.Wrap(process.Command{Name: "git", Args: []string{"var", "GIT_PAGER"}, Dir: "/"}, Rules{Mode: Strict}, "")
	if err != nil {
		t.Fatal(err)
	}
	launch := process.NewLauncher("", nil)
	defer launch.Close()
	p, err := process.Start(c, launch)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Exited()
	if exit, ok := errors.AsType[*process.ExitError](p.ExitStatus()); !ok || exit.Reason() != "exit status 0" {
		t.Errorf("git: %v", p.ExitStatus())
	}
}
