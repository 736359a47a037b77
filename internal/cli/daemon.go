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

// configFile returns the path of the configuration file, whether or not it exists.
func (r *run) configFile() (string, error) { return config.ResolvePath(r.configPath, r.lookup) }

// dataDirectory returns the data directory of the daemon.
func (r *run) dataDirectory() (string, error) {
	path, err := r.configFile()
	if err != nil {
		return "", err
	}
	return config.ResolveDataDir(r.dataDir, path, r.lookup)
}

// client returns a client of the daemon of the data directory.
func (r *run) client() (*api.Client, error) {
	dir, err := r.dataDirectory()
	if err != nil {
		return nil, err
	}
	return api.NewClient(api.Endpoint{Socket: api.SocketPath(dir), Source: activity.SourceCLI, Version: r.Version, Permit: r.signer.permit}), nil
}

// withClient returns the run function of a command that uses the daemon.
func (r *run) withClient(f func(ctx context.Context, c *api.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := r.client()
		if err != nil {
			return err
		}
		defer c.Close()
		return f(cmd.Context(), c, args)
	}
}

// runOperation returns the run function of a command that runs one operation and shows the answer.
func runOperation[In, Out any](r *run, op *api.Op[In, Out], in func(args []string) (In, error), show func(p *printer, out Out)) func(*cobra.Command, []string) error {
	return runOperationAs(r, op, in, func(out Out) Out { return out }, show)
}

// runOperationAs is runOperation for an answer of which the command shows a part.
func runOperationAs[In, Out, Shown any](r *run, op *api.Op[In, Out], in func(args []string) (In, error), as func(Out) Shown, show func(p *printer, s Shown)) func(*cobra.Command, []string) error {
	return r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
		asked, err := in(args)
		if err != nil {
			return err
		}
		out, err := op.Call(ctx, c, asked)
		if err != nil {
			return err
		}
		shown := as(out)
		return r.print(shown, func(p *printer) { show(p, shown) })
	})
}

// changeOrOffline runs an operation that changes the configuration file: in the daemon, or without one in this process with the same checks.
func changeOrOffline[In, Out any](r *run, ctx context.Context, c *api.Client, op *api.Op[In, Out], in In, offline func(ops.OfflineAdmin, In) (Out, error)) (Out, error) {
	out, err := op.Call(ctx, c, in)
	if !api.IsDaemonAbsent(err) {
		return out, err
	}
	path, err := r.configFile()
	if err != nil {
		return out, err
	}
	live, err := r.open(path)
	if err != nil {
		return out, err
	}
	return offline(ops.NewOfflineAdmin(live), in)
}

// runChange returns the run function of a command that runs such an operation and shows the answer.
func runChange[In, Out any](r *run, op *api.Op[In, Out], offline func(ops.OfflineAdmin, In) (Out, error), in func(args []string) (In, error), show func(p *printer, out Out)) func(*cobra.Command, []string) error {
	return r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
		asked, err := in(args)
		if err != nil {
			return err
		}
		out, err := changeOrOffline(r, ctx, c, op, asked, offline)
		if err != nil {
			return err
		}
		return r.print(out, func(p *printer) { show(p, out) })
	})
}

// Inputs that depend on the arguments only.
func noInput[In any]([]string) (in In, err error) { return in, nil }

func serverNamed(args []string) (ops.ServerRef, error) { return ops.ServerRef{Name: args[0]}, nil }

func toolNamed(args []string) (ops.ToolRef, error) {
	id, err := toolID(args[0])
	return ops.ToolRef(id), err
}

// toolID parses an argument that names a tool.
func toolID(name string) (tool.ID, error) {
	id, err := tool.ParseID(name)
	if err != nil {
		return id, problem.Newf(problem.InvalidName, "Invalid tool name '%s': %v", printable(name), err).
			WithHint("Write server:tool, as `mcpproxy tools list` shows it.")
	}
	return id, nil
}
