package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// release contains the parameters of a release.
type release struct {
	Version string // semantic, without v
	Commit  string
	Date    time.Time // of the commit; used for all times in the release
	Home    string    // address of the project, without a slash at its end
	root    string    // directory of the sources
	out     string    // absolute path of the output directory
}

// readCommit reads the commit of the sources and its time.
func (r *release) readCommit(ctx context.Context, dirty bool) error {
	changed, err := r.git(ctx, "status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return err
	}
	if changed != "" && !dirty {
		return errors.New("the sources have changes that are not committed: nobody could make the same release from the commit")
	}
	if r.Commit, err = r.git(ctx, "rev-parse", "HEAD"); err != nil {
		return err
	}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		if epoch, err = r.git(ctx, "log", "-1", "--format=%ct"); err != nil {
			return err
		}
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH is no number of seconds: %w", err)
	}
	r.Date = time.Unix(seconds, 0).UTC()
	return nil
}

func (r *release) git(ctx context.Context, args ...string) (string, error) {
	out, err := r.command(ctx, nil, "git", args...)
	return strings.TrimSpace(string(out)), err
}

// command runs a program in the directory of the sources and returns its output.
func (r *release) command(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	if env != nil {
		cmd.Env = env
	}
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return out, err
}
