package process

import (
	"context"
	"errors"
	"os/exec"
	"time"
)

// maxOutput bounds what Run returns, in bytes.
const maxOutput = 64 << 10

// Run runs a program to its end, without a shell, in the environment that is given,
// and returns what it wrote, of both kinds, at most 64 KiB of it. When ctx ends, the
// program is ended with all that it has started.
func Run(ctx context.Context, argv, environ []string) (said string, err error) {
	if len(argv) == 0 {
		return "", errors.New("no program")
	}
	var out bounded
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = environ, &out, &out
	cmd.SysProcAttr = groupAttr(false)
	cmd.Cancel = func() error { killGroup(cmd.Process); return nil }
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	return string(out.kept), err
}

// bounded keeps the beginning of what is written to it.
type bounded struct{ kept []byte }

func (b *bounded) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), maxOutput-len(b.kept))]...)
	return len(p), nil
}
