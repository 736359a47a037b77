package process

import (
	"context"
	"errors"
	"os/exec"
	"time"
)

// maxOutput bounds the output that RunCommand returns, in bytes.
const maxOutput = 64 << 10

// RunCommand runs a program to its end, without a shell, with that environment, and
// returns at most 64 KiB of stdout and stderr. When ctx ends, the program and its
// descendants are killed.
func RunCommand(ctx context.Context, argv, environ []string) (said string, err error) {
	if len(argv) == 0 {
		return "", errors.New("no program")
	}
	var out boundedBuffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = environ, &out, &out
	cmd.SysProcAttr = newProcessGroupAttr(false)
	cmd.Cancel = func() error { killGroup(cmd.Process); return nil }
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	return string(out.kept), err
}

// boundedBuffer stores the beginning of the data written to it.
type boundedBuffer struct{ kept []byte }

func (b *boundedBuffer) Write(p []byte) (int, error) {
	b.kept = append(b.kept, p[:min(len(p), maxOutput-len(b.kept))]...)
	return len(p), nil
}
