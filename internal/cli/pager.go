package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
)

// writePaged writes output to stdout. If stdout is a terminal and the output is longer than the screen, it uses the
// pager.
func (r *invocation) writePaged(out []byte) error {
	if r.terminal && !r.noPager && r.height > 0 && bytes.Count(out, []byte("\n")) >= r.height {
		if pager := r.findPager(); pager != nil {
			return r.runPager(pager, out)
		}
	}
	_, err := r.Stdout.Write(out)
	return err
}

// findPager returns the pager command: the value of PAGER, or less. It returns nil if there is no pager.
func (r *invocation) findPager() []string {
	pager := []string{"less", "-FRX"}
	if set, ok := r.lookupEnv("PAGER"); ok {
		pager = strings.Fields(set)
	}
	if len(pager) == 0 {
		return nil
	}
	path, err := exec.LookPath(pager[0])
	if err != nil {
		return nil
	}
	return append([]string{path}, pager[1:]...)
}

// runPager shows output with a pager. It is not an error if the user quits the pager early. If the pager does not
// start, runPager writes the output to stdout.
func (r *invocation) runPager(pager []string, out []byte) error {
	cmd := exec.Command(pager[0], pager[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = bytes.NewReader(out), r.Stdout, r.Stderr, os.Environ()
	err := cmd.Run()
	var exit *exec.ExitError
	if err == nil || errors.As(err, &exit) {
		return nil
	}
	_, err = r.Stdout.Write(out)
	return err
}
