package cli

import (
	"cmp"
	"context"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"mcpproxy/internal/api"
	"mcpproxy/internal/app"
	"mcpproxy/internal/app/autostart"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/demo"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// Deps are the dependencies of the commands. A nil field means the value of the process, such as os.Stdout.
type Deps struct {
	Version string
	Commit  string // commit of the sources; "" means the one that the go command recorded
	Date    string // date of the commit in RFC 3339; "" means the same
	Serve   func(ctx context.Context, o app.Options) error
	Demo    func(ctx context.Context, o demo.Options) error
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Now     func() time.Time
	Local   *time.Location
	Getenv  func(name string) string
	// CompletionTimeout limits how long a shell waits for completions; 0 means completionTimeout.
	CompletionTimeout time.Duration
	// Manager manages the user's services; nil means the service manager of the system.
	Manager autostart.Manager
	// Program is the path of the program that a service runs; "" means this program.
	Program string
	// Ask asks the user a question and returns the answer. If it is nil, the command asks on the terminal of the
	// process, if there is one.
	Ask func(ctx context.Context, question string) (string, error)
}

func newInvocation(d Deps) *invocation {
	d.Stdin = cmp.Or[io.Reader](d.Stdin, os.Stdin)
	d.Stdout = cmp.Or[io.Writer](d.Stdout, os.Stdout)
	d.Stderr = cmp.Or[io.Writer](d.Stderr, os.Stderr)
	d.Local = cmp.Or(d.Local, time.Local)
	if d.Now == nil {
		d.Now = time.Now
	}
	r := &invocation{Deps: d}
	r.terminal, r.width, r.height = detectTerminal(d.Stdout)
	// COLUMNS applies even if stdout is not a terminal.
	if set, _ := r.lookupEnv("COLUMNS"); set != "" {
		if n, err := strconv.Atoi(set); err == nil && n > 0 {
			r.width = n
		}
	}
	return r
}

// invocation is one run of a command: its flags and outputs.
type invocation struct {
	Deps
	configPath string
	dataDir    string
	output     string
	asJSON     bool
	noColor    bool
	noPager    bool
	wide       bool     // tables show all columns in full width
	quiet      bool     // lists show only names or IDs
	terminal   bool     // stdout is a terminal
	width      int      // maximum width of a line; 0 means no limit, for programs
	height     int      // height of the terminal in lines; 0 if unknown
	notes      []string // messages to print after the data
	signer     presenceSigner
}

// lookupEnv returns an environment variable.
func (r *invocation) lookupEnv(name string) (string, bool) {
	if r.Getenv == nil {
		return os.LookupEnv(name)
	}
	v := r.Getenv(name)
	return v, v != ""
}

// detectTerminal reports whether w is a terminal, and returns its size.
func detectTerminal(w io.Writer) (is bool, width, height int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false, 0, 0
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return true, 0, 0
	}
	return true, width, height
}

// allowsColor reports whether output to stdout may contain colors.
func (r *invocation) allowsColor() bool {
	off, _ := r.lookupEnv("NO_COLOR")
	kind, _ := r.lookupEnv("TERM")
	return r.terminal && !r.noColor && off == "" && kind != "dumb"
}

// resolveConfigPath returns the path of the configuration file, whether or not it exists.
func (r *invocation) resolveConfigPath() (string, error) {
	return config.ResolvePath(r.configPath, r.lookupEnv)
}

// resolveDataDir returns the data directory of the daemon.
func (r *invocation) resolveDataDir() (string, error) {
	path, err := r.resolveConfigPath()
	if err != nil {
		return "", err
	}
	return config.ResolveDataDir(r.dataDir, path, r.lookupEnv)
}

// newDaemonClient returns a client for the daemon of the data directory.
func (r *invocation) newDaemonClient() (*api.Client, error) {
	dir, err := r.resolveDataDir()
	if err != nil {
		return nil, err
	}
	return api.NewClient(api.Endpoint{Socket: api.SocketPath(dir), Source: activity.SourceCLI, Version: r.Version, Permit: r.signer.confirmAndSign}), nil
}

// callDaemon runs one operation in the daemon.
func callDaemon[In, Out any](ctx context.Context, r *invocation, op *api.Op[In, Out], in In) (out Out, err error) {
	c, err := r.newDaemonClient()
	if err != nil {
		return out, err
	}
	defer c.Close()
	return op.Call(ctx, c, in)
}

// withDaemonClient returns the run function of a command that uses the daemon.
func (r *invocation) withDaemonClient(f func(ctx context.Context, c *api.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := r.newDaemonClient()
		if err != nil {
			return err
		}
		defer c.Close()
		return f(cmd.Context(), c, args)
	}
}

// prepareFunc converts the arguments of a command to the input of its operation. It may ask the daemon and the user
// first.
type prepareFunc[In any] func(ctx context.Context, c *api.Client, args []string) (In, error)

// operationRunFunc returns the run function of a command that runs one operation and shows the answer.
func operationRunFunc[In, Out any](r *invocation, op *api.Op[In, Out], in prepareFunc[In], show func(p *printer, out Out)) func(*cobra.Command, []string) error {
	return convertedOperationRunFunc(r, op, in, func(out Out) Out { return out }, show)
}

// convertedOperationRunFunc is operationRunFunc for a command that converts the answer before it shows it.
func convertedOperationRunFunc[In, Out, Shown any](r *invocation, op *api.Op[In, Out], in prepareFunc[In], as func(Out) Shown, show func(p *printer, s Shown)) func(*cobra.Command, []string) error {
	return showResultRunFunc(r, func(ctx context.Context, c *api.Client, args []string) (shown Shown, err error) {
		asked, err := in(ctx, c, args)
		if err != nil {
			return shown, err
		}
		out, err := op.Call(ctx, c, asked)
		return as(out), err
	}, show)
}

// showResultRunFunc returns the run function of a command that uses the daemon and shows a result.
func showResultRunFunc[Out any](r *invocation, get func(ctx context.Context, c *api.Client, args []string) (Out, error), show func(p *printer, out Out)) func(*cobra.Command, []string) error {
	return r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
		out, err := get(ctx, c, args)
		if err != nil {
			return err
		}
		return r.printOutput(out, func(p *printer) { show(p, out) })
	})
}

// callDaemonOrOffline runs an operation in the daemon. If no daemon is running, it runs the operation on the
// configuration file in this process, with the same checks.
func callDaemonOrOffline[In, Out any](r *invocation, ctx context.Context, c *api.Client, op *api.Op[In, Out], in In, offline func(ops.OfflineAdmin, In) (Out, error)) (Out, error) {
	out, err := op.Call(ctx, c, in)
	if !api.IsDaemonAbsentError(err) {
		return out, err
	}
	live, err := r.openConfig()
	if err != nil {
		return out, err
	}
	return offline(ops.NewOfflineAdmin(live), in)
}

// configChangeRunFunc returns the run function of a command that changes the configuration file and shows the result.
// It works with or without a daemon.
func configChangeRunFunc[In, Out any](r *invocation, op *api.Op[In, Out], offline func(ops.OfflineAdmin, In) (Out, error), in prepareFunc[In], show func(p *printer, out Out)) func(*cobra.Command, []string) error {
	return showResultRunFunc(r, func(ctx context.Context, c *api.Client, args []string) (out Out, err error) {
		asked, err := in(ctx, c, args)
		if err != nil {
			return out, err
		}
		return callDaemonOrOffline(r, ctx, c, op, asked, offline)
	}, show)
}

// zeroInput returns the zero value, as the input of an operation without parameters.
func zeroInput[In any](context.Context, *api.Client, []string) (in In, err error) { return in, nil }

func parseServerRef(_ context.Context, _ *api.Client, args []string) (ops.ServerRef, error) {
	return ops.ServerRef{Name: args[0]}, nil
}

func parseToolRef(_ context.Context, _ *api.Client, args []string) (ops.ToolRef, error) {
	id, err := parseToolID(args[0])
	return ops.ToolRef(id), err
}

// parseToolID parses an argument of the form server:tool.
func parseToolID(name string) (tool.ID, error) {
	id, err := tool.ParseID(name)
	if err != nil {
		return id, problem.Newf(problem.InvalidName, "Invalid tool name '%s': %v", toPrintable(name), err).
			WithHint("Write server:tool, as `mcpproxy tools list` shows it.")
	}
	return id, nil
}
