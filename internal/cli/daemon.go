package cli

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/activity"
	"mcpproxy/internal/api"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/tool"
)

// configFile is the path of the configuration file, whether it exists or not.
func (r *run) configFile() (string, error) { return config.ResolvePath(r.configPath, r.lookup) }

// dataDirectory is where the daemon keeps its data.
func (r *run) dataDirectory() (string, error) {
	path, err := r.configFile()
	if err != nil {
		return "", err
	}
	return config.ResolveDataDir(r.dataDir, path, r.lookup)
}

// client talks to the daemon of the data directory.
func (r *run) client() (*api.Client, error) {
	dir, err := r.dataDirectory()
	if err != nil {
		return nil, err
	}
	return api.NewClient(api.Endpoint{Socket: api.SocketPath(dir), Source: activity.SourceCLI, Version: r.Version}), nil
}

// ask is a command that asks the daemon.
func (r *run) ask(f func(ctx context.Context, c *api.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := r.client()
		if err != nil {
			return err
		}
		defer c.Close()
		return f(cmd.Context(), c, args)
	}
}

// does is a command that does one operation and shows the answer.
func does[In, Out any](r *run, op *api.Op[In, Out], in func(args []string) (In, error), show func(p *printer, out Out)) func(*cobra.Command, []string) error {
	return r.ask(func(ctx context.Context, c *api.Client, args []string) error {
		asked, err := in(args)
		if err != nil {
			return err
		}
		out, err := op.Call(ctx, c, asked)
		if err != nil {
			return err
		}
		return r.print(out, func(p *printer) { show(p, out) })
	})
}

// Inputs that only the arguments make.
func nothing([]string) (in gateway.Nothing, err error) { return in, nil }

func named(args []string) (gateway.ServerRef, error) { return gateway.ServerRef{Name: args[0]}, nil }

func toolNamed(args []string) (gateway.ToolRef, error) {
	id, err := toolID(args[0])
	return gateway.ToolRef(id), err
}

// forServer is a command that does an operation on the server that its argument
// names.
func forServer[Out any](r *run, op *api.Op[gateway.ServerRef, Out], cmd *cobra.Command, show func(p *printer, out Out)) *cobra.Command {
	cmd.Use, cmd.Args, cmd.ValidArgsFunction = cmd.Use+" <server>", exactly("server"), r.complete(serverNames)
	cmd.RunE = does(r, op, named, show)
	return cmd
}

// completionTime is how long a shell waits for live values, unless Deps say
// otherwise.
const completionTime = 200 * time.Millisecond

// complete completes the first argument with values that the daemon knows. A
// daemon that does not answer gives none, and says nothing.
func (r *run) complete(values func(ctx context.Context, c *api.Client, typed string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return r.live(cmd, typed, values), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeFlag is complete for the value of a flag.
func (r *run) completeFlag(values func(ctx context.Context, c *api.Client, typed string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return r.live(cmd, typed, values), cobra.ShellCompDirectiveNoFileComp
	}
}

func (r *run) live(cmd *cobra.Command, typed string, values func(context.Context, *api.Client, string) []string) []string {
	parent := cmd.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, cancel := context.WithTimeout(parent, cmp.Or(r.CompletionTime, completionTime))
	defer cancel()
	c, err := r.client()
	if err != nil {
		return nil
	}
	defer c.Close()
	var fitting []string
	for _, v := range values(ctx, c, typed) {
		if v = oneLine(v); strings.HasPrefix(v, typed) {
			fitting = append(fitting, v)
		}
	}
	return fitting
}

// each is what f returns of each of a list.
func each[T any](all []T, f func(T) string) []string {
	var out []string
	for _, one := range all {
		out = append(out, f(one))
	}
	return out
}

func serverNames(ctx context.Context, c *api.Client, _ string) []string {
	all, _ := api.ListServers.Call(ctx, c, gateway.Nothing{})
	return each(all.Servers, func(s gateway.ServerView) string { return s.Name })
}

func toolNames(ctx context.Context, c *api.Client, _ string) []string {
	all, _ := api.ListTools.Call(ctx, c, gateway.ToolFilter{})
	return each(all.Tools, func(t gateway.ToolView) string { return t.Name })
}

func recordIDs(ctx context.Context, c *api.Client, _ string) []string {
	page, _ := api.ListActivity.Call(ctx, c, activity.Filter{})
	return each(page.Activities, func(a activity.Record) string { return a.ID })
}

// words completes with fixed values.
func words(values ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
}

// toolID reads an argument that names a tool.
func toolID(name string) (tool.ID, error) {
	id, err := tool.ParseID(name)
	if err != nil {
		return id, problem.Newf(problem.InvalidName, "Invalid tool name '%s': %v", printable(name), err).
			WithHint("Write server:tool, as `mcpproxy tools list` shows it.")
	}
	return id, nil
}
