package cli

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/app"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/stdio"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/redact"
)

func newStdioCommand(r *invocation) commandSpec {
	var server, profile, lane string
	var all bool
	return commandSpec{flags: map[string]any{"server": &server, "all": &all, "lane": &lane, "profile": &profile}, run: func(cmd *cobra.Command, _ []string) error {
		path := "/mcp"
		switch named, of := cmd.Flags().Changed("server"), cmd.Flags().Changed("profile"); {
		case named && all:
			return newUsageError("--server and --all cannot be combined.", "Give one of them.")
		case named && lane != "":
			return newUsageError("--server and --lane cannot be combined.", "Give one of them.")
		case named && of:
			return newUsageError("--server and --profile cannot be combined.", "Give one of them.")
		case of:
			if err := config.CheckProfileName(profile); err != nil {
				return newUsageError("Invalid value '"+toPrintable(profile)+"' for --profile: "+err.Error(), "See `mcpproxy profile list`.")
			}
			path += "/p/" + profile
		}
		switch {
		case lane != "":
			return r.runStdioBridge(cmd.Context(), path+"/all/"+lane)
		case all:
			return r.runStdioBridge(cmd.Context(), path+"/all")
		case !cmd.Flags().Changed("server"):
			return r.runStdioBridge(cmd.Context(), path)
		}
		if err := tool.CheckServerName(server); err != nil {
			return newUsageError("Invalid value '"+toPrintable(server)+"' for --server: "+err.Error(), "See `mcpproxy upstream list`.")
		}
		return r.runStdioBridge(cmd.Context(), "/mcp/servers/"+server)
	}}
}

// runStdioBridge relays messages between stdin and stdout and the daemon until the client closes stdin.
func (r *invocation) runStdioBridge(ctx context.Context, path string) error {
	file, err := r.resolveConfigPath()
	if err != nil {
		return err
	}
	token, err := r.agentTokenFromEnv()
	if err != nil {
		return err
	}
	dir, err := r.resolveDataDir()
	if err != nil {
		return err
	}
	if r.Serve == nil {
		return errNotBuiltIn
	}
	signal.Ignore(syscall.SIGPIPE) // the exit of this client must not stop a daemon that others use
	logger := slog.New(slog.NewTextHandler(r.Stderr, &slog.HandlerOptions{ReplaceAttr: redact.Attr}))
	own := &inProcessDaemon{
		dial: func(ctx context.Context) (net.Conn, error) { return api.DialSocket(ctx, api.SocketPath(dir)) },
		serve: func(ctx context.Context) error {
			return r.Serve(ctx, app.Options{ConfigPath: file, DataDir: r.dataDir, AnyPort: true, Version: r.Version, Stderr: r.Stderr})
		},
	}
	err = stdio.Run(ctx, stdio.Options{
		In: r.Stdin, Out: r.Stdout, Dial: own.dial, Start: own.ensureDaemon,
		Path: path, Token: token, UserAgent: "mcpproxy-stdio/" + r.Version, Logger: logger,
	})
	return errors.Join(err, own.stop())
}

// agentTokenFromEnv returns the agent token from the environment, or "" if there is none. Its errors do not contain the
// token.
func (r *invocation) agentTokenFromEnv() (string, error) {
	token, _ := r.lookupEnv(tokenVariable)
	if strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "", newUsageError("The value of "+tokenVariable+" is not a token: it contains spaces or other invalid characters.", "Set it to the exact output of `mcpproxy token create`.")
	}
	return token, nil
}

// inProcessDaemon is the daemon that this process runs if no other daemon is running.
type inProcessDaemon struct {
	dial  func(ctx context.Context) (net.Conn, error)
	serve func(ctx context.Context) error

	mu     sync.Mutex // guards the fields below
	cancel context.CancelFunc
	ended  chan struct{} // closed when serve has returned; nil if it is not running
	err    error         // result of serve
}

// The timeout and the poll interval while waiting for a daemon. Another daemon may be starting or stopping.
const (
	startTimeout      = 20 * time.Second
	startPollInterval = 20 * time.Millisecond
)

// ensureDaemon waits until a daemon answers. It starts one in this process if no other is running.
func (o *inProcessDaemon) ensureDaemon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	look := time.NewTicker(startPollInterval)
	defer look.Stop()
	for {
		if c, err := o.dial(ctx); err == nil {
			return c.Close()
		}
		if err := o.launchUnlessRunning(ctx); err != nil && !errors.Is(err, app.ErrInUse) {
			return err
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return problem.New(problem.DaemonNotRunning, "No daemon responds, but another process locks its data directory.",
				"Find it with `mcpproxy status`, and stop it.").Because(ctx.Err())
		}
	}
}

// launchUnlessRunning starts the daemon in this process unless it is already running. It returns the error if the
// previous run failed.
func (o *inProcessDaemon) launchUnlessRunning(ctx context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended != nil {
		select {
		case <-o.ended:
			o.ended = nil
			return o.err
		default:
			return nil
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the daemon outlives the request that started it
	ended := make(chan struct{})
	o.cancel, o.ended = cancel, ended
	go func() {
		defer close(ended)
		o.err = o.serve(ctx)
	}()
	return nil
}

// stop stops the daemon if it runs in this process.
func (o *inProcessDaemon) stop() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended == nil {
		return nil
	}
	o.cancel()
	<-o.ended
	if errors.Is(o.err, app.ErrInUse) {
		return nil // another daemon is running
	}
	return o.err
}
