// Command mcpproxy is one local endpoint in front of many MCP servers. Package app wires its packages, and
// docs/architecture.md lists them.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"mcpproxy/internal/app"
	"mcpproxy/internal/cli"
	"mcpproxy/internal/demo"
	"mcpproxy/internal/upstream/sandbox"
)

// Build information. Releases set it with -ldflags "-X main.version=…". In other builds, the go command provides the
// commit and its date.
var (
	version = "0.1.0-dev"
	commit  = ""
	date    = ""
)

func main() {
	// The daemon starts this binary again to run a server in its sandbox.
	if len(os.Args) > 1 && os.Args[1] == sandbox.ExecCommand {
		os.Exit(sandbox.Exec(os.Args[2:]))
	}
	ctx, stop, again := newSignalContext()
	defer stop()
	// The demo starts this binary again to run its sample servers.
	if len(os.Args) == 3 && os.Args[1] == demo.UpstreamCommand {
		if err := demo.ServeStdio(ctx, os.Args[2], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "Error:", err)
			os.Exit(1)
		}
		return
	}
	code := cli.Run(ctx, os.Args[1:], cli.Deps{
		Version: version, Commit: commit, Date: date, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		Serve: func(ctx context.Context, o app.Options) error {
			o.Abort = again
			return demo.RunDaemonWithSamples(ctx, o)
		},
		Demo: func(ctx context.Context, o demo.Options) error {
			o.Abort = again
			return demo.Run(ctx, o)
		},
	})
	stop()
	os.Exit(code)
}

// newSignalContext returns a context that the first signal cancels, and a channel that the second signal closes. A
// third signal kills the program.
func newSignalContext() (ctx context.Context, stop func(), again <-chan struct{}) {
	ctx, cancel := context.WithCancel(context.Background())
	twice := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		close(twice)
		signal.Stop(signals)
	}()
	return ctx, func() { signal.Stop(signals); cancel() }, twice
}
