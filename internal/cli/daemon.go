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

func serverNames(ctx context.Context, c *api.Client, _ string) []string {
	servers, _ := c.Servers(ctx)
	var names []string
	for _, s := range servers {
		names = append(names, s.Name)
	}
	return names
}

func toolNames(ctx context.Context, c *api.Client, _ string) []string {
	tools, _ := c.Tools(ctx, gateway.ToolFilter{})
	var names []string
	for _, t := range tools.Tools {
		names = append(names, t.Name)
	}
	return names
}

func recordIDs(ctx context.Context, c *api.Client, _ string) []string {
	page, _ := c.Activities(ctx, activity.Filter{})
	var ids []string
	for _, a := range page.Activities {
		ids = append(ids, a.ID)
	}
	return ids
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
