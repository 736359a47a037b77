package cli

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// errLeftOut is for a CLI that was made without what the command runs.
var errLeftOut = errors.New("this program was built without the command")

func serveCommand(r *run) *cobra.Command {
	var listen string
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon in the foreground",
		Example: "  mcpproxy serve\n  mcpproxy serve --listen 127.0.0.1:9090\n" +
			"  mcpproxy serve --config ./mcp_config.json --data-dir ./data",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := r.configFile()
			if err != nil {
				return err
			}
			if r.Serve == nil {
				return errLeftOut
			}
			return r.Serve(cmd.Context(), ServeOptions{ConfigPath: path, DataDir: r.dataDir, Listen: listen})
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "`address` to listen on (default as configured: 127.0.0.1:8080)")
	return cmd
}

func demoCommand(r *run) *cobra.Command {
	var o DemoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "The first minute, needing nothing",
		Long: `Starts MCPProxy with a temporary data directory and bundled servers, shows an
agent that finds tools, reads, is refused and deletes, prints the log, and stays
up so that you can try more.`,
		Example: "  mcpproxy demo\n  mcpproxy demo --once",
		Args:    atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if r.Demo == nil {
				return errLeftOut
			}
			o.Color, o.Stdout, o.Stderr = r.color(), r.Stdout, r.Stderr
			return r.Demo(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.Once, "once", false, "end after the scripted session")
	cmd.Flags().StringVar(&o.Listen, "listen", "", "`address` to listen on (default 127.0.0.1:8080)")
	return cmd
}

func versionCommand(r *run) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "The version of this program",
		Example: "  mcpproxy version\n  mcpproxy version -o json",
		Args:    atMost(0),
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version string `json:"version"`
				Go      string `json:"go"`
				System  string `json:"system"`
			}{r.Version, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			return r.print(v, func(p *printer) { fmt.Fprintf(p, "mcpproxy %s (%s, %s)\n", v.Version, v.Go, v.System) })
		},
	}
}

func completionCommand(r *run) *cobra.Command {
	shells := map[string]func(root *cobra.Command) error{
		"bash":       func(root *cobra.Command) error { return root.GenBashCompletionV2(r.Stdout, true) },
		"zsh":        func(root *cobra.Command) error { return root.GenZshCompletion(r.Stdout) },
		"fish":       func(root *cobra.Command) error { return root.GenFishCompletion(r.Stdout, true) },
		"powershell": func(root *cobra.Command) error { return root.GenPowerShellCompletionWithDesc(r.Stdout) },
	}
	return &cobra.Command{
		Use:   "completion <bash|zsh|fish|powershell>",
		Short: "Completion for your shell",
		Long:  "Prints a script that completes commands, flags and the names of servers, tools and records.",
		Example: "  source <(mcpproxy completion bash)\n  mcpproxy completion zsh > \"${fpath[1]}/_mcpproxy\"\n" +
			"  mcpproxy completion fish > ~/.config/fish/completions/mcpproxy.fish",
		Args:              exactly("shell"),
		ValidArgsFunction: words("bash", "zsh", "fish", "powershell"),
		RunE: func(cmd *cobra.Command, args []string) error {
			write, ok := shells[args[0]]
			if !ok {
				return usage("Invalid shell '"+args[0]+"': must be bash, zsh, fish, or powershell", "")
			}
			return write(cmd.Root())
		},
	}
}
