package cli

import (
	"context"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

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
