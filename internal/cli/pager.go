package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
)

// writePaged writes output to stdout; on a terminal, output that is longer than the screen goes through the pager.
func (r *invocation) writePaged(out []byte) error {
	if r.terminal && !r.noPager && r.height > 0 && bytes.Count(out, []byte("\n")) >= r.height {
		if pager := r.findPager(); pager != nil {
			return r.runPager(pager, out)
		}
	}
	_, err := r.Stdout.Write(out)
	return err
}

// findPager returns the command of the pager: that of PAGER, or less; nil for none.
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

// runPager shows output with a pager. A pager that the user quits early is not an error; one that does not start is replaced by plain output.
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
