package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// target is a system to build for, named as in Go.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// all are the systems of a release.
var all = []target{
	{"darwin", "amd64"}, {"darwin", "arm64"}, {"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

// chosen returns the systems in a list, or all systems if the list is empty.
func chosen(list string) ([]target, error) {
	if list == "" {
		return all, nil
	}
	var some []target
	for word := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(all, func(t target) bool { return t.String() == word })
		if i < 0 {
			return nil, fmt.Errorf("-only: %q is none of %v", word, all)
		}
		some = append(some, all[i])
	}
	return some, nil
}

// binary returns the name of the program's file.
func (t target) binary() string {
	if t.os == "windows" {
		return "mcpproxy.exe"
	}
	return "mcpproxy"
}

// environment returns the environment of the go command, without settings that differ between machines.
func (t target) environment() []string {
	return append(os.Environ(), "GOOS="+t.os, "GOARCH="+t.arch, "CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0",
		"GOFLAGS=-mod=readonly", "GOWORK=off", "GOEXPERIMENT=", "GODEBUG=", "GOFIPS140=off")
}

// largest is the size limit of a program in bytes: 40 MiB. The program for Windows is the largest.
const largest = 40 << 20

// build builds the program for a system and returns its bytes.
func (r *release) build(ctx context.Context, t target) ([]byte, error) {
	dir, err := os.MkdirTemp("", "mcpproxy-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, t.binary())
	flags := "-s -w -buildid= -X main.version=" + r.Version + " -X main.commit=" + r.Commit + " -X main.date=" + r.Date.Format(time.RFC3339)
	if _, err := r.command(ctx, t.environment(), "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", file, "./cmd/mcpproxy"); err != nil {
		return nil, err
	}
	program, err := os.ReadFile(file)
	if err == nil && len(program) > largest {
		err = fmt.Errorf("the program for %v has %d bytes, more than %d", t, len(program), largest)
	}
	return program, err
}
