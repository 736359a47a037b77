// Command packaging makes a release of MCPProxy: programs for six systems, archives,
// packages for Debian, Fedora and Alpine, the root file system of a container, what
// Homebrew and winget ask for, bills of materials and checksums.
//
// It guarantees that the same commit, built with the same Go, gives the same bytes on
// every machine, and that every module and npm package whose code is in a program
// comes with its licence. It signs and publishes nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

var isVersion = regexp.MustCompile(`^\d+\.\d+\.\d+(-(alpha|beta|rc)\d+)?$`)

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("packaging", flag.ContinueOnError)
	r := release{root: "."}
	flags.StringVar(&r.Version, "version", "", "the `version`, such as 1.2.3 or 1.2.3-rc1")
	flags.StringVar(&r.Home, "home", "", "the `address` of the project: the formula and the manifests load from ADDRESS/releases/download/vVERSION")
	flags.StringVar(&r.out, "out", "dist", "the `directory` to write to, which is empty or does not exist")
	only := flags.String("only", "", "only these `systems`, such as linux/amd64,windows/arm64: what needs the others is left out")
	dirty := flags.Bool("allow-dirty", false, "also from sources that are not committed, for a try")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !isVersion.MatchString(r.Version) || !strings.HasPrefix(r.Home, "https://") || flags.NArg() > 0 {
		return errors.New("usage: go run ./packaging -version 1.2.3 -home https://… [-out dist]")
	}
	r.Home = strings.TrimSuffix(r.Home, "/")
	targets, err := chosen(*only)
	if err != nil {
		return err
	}
	if err := r.readCommit(ctx, *dirty); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(r.out); err != nil {
		return err
	}
	if err := emptyDirectory(r.out); err != nil {
		return err
	}
	return r.make(ctx, targets)
}

// emptyDirectory creates a directory, or accepts an existing empty one.
func emptyDirectory(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s is not empty: give another -out, or remove it", dir)
	}
	return err
}

// make builds the whole release.
func (r *release) make(ctx context.Context, targets []target) error {
	notices, err := r.licences(ctx, targets)
	if err != nil {
		return err
	}
	shared, err := r.shared(notices)
	if err != nil {
		return err
	}
	for _, t := range targets {
		fmt.Fprintln(os.Stderr, "building", t)
		program, err := r.build(ctx, t)
		if err != nil {
			return err
		}
		if err := r.archive(t, program, shared); err != nil {
			return err
		}
		if err := r.bill(t, program, notices); err != nil {
			return err
		}
		if t.os != "linux" {
			continue
		}
		if err := r.packages(ctx, t, program, shared); err != nil {
			return err
		}
		if err := r.rootFS(t, program, shared); err != nil {
			return err
		}
	}
	if len(targets) == len(all) {
		if err := r.manifests(); err != nil {
			return err
		}
	}
	return r.checksums()
}
