// Package cli is the command line: it turns arguments into requests to the
// daemon (or into a run of Serve or Demo) and answers into what a person or a
// program reads.
//
// It guarantees that data goes to stdout and talk to stderr, that -o json and
// -o yaml give the full data, that the exit code follows from the code of the
// problem, and that text from servers cannot steer the terminal. It decides
// nothing: what it shows is what the daemon said.
package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/problem"
)

// Run runs the command that args name, without the program's own name, and
// gives the exit code.
func Run(ctx context.Context, args []string, d Deps) int {
	r := newRun(d)
	root := r.root()
	root.SetArgs(args)
	root.SetIn(r.Stdin)
	root.SetOut(r.Stdout)
	root.SetErr(r.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return problem.ExitDone
	}
	p := asProblem(err)
	if r.output == "" || r.output == formatTable {
		r.asJSON = r.asJSON || wantsJSON(args)
	}
	r.printError(p)
	return p.Code.ExitCode()
}

// asProblem returns what went wrong as a problem. What is none comes from this
// program itself and was written for its user.
func asProblem(err error) *problem.Problem {
	var p *problem.Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, context.Canceled):
		return problem.New(problem.Interrupted, "Interrupted.", "")
	}
	return problem.New(problem.Internal, sentence(err.Error()), "")
}

// wantsJSON looks for -o json among arguments that could not be parsed.
func wantsJSON(args []string) bool {
	for i, a := range args {
		if a == "--" {
			return false
		}
		if slices.Contains([]string{"--json", "--output=json", "-o=json", "-ojson"}, a) {
			return true
		}
		if (a == "-o" || a == "--output") && i+1 < len(args) && args[i+1] == formatJSON {
			return true
		}
	}
	return false
}

// root makes the tree of commands.
func (r *run) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "mcpproxy",
		Short: "One local endpoint in front of all your MCP servers",
		Long: `MCPProxy is one local endpoint in front of all your MCP servers. Agents find the
right tool by searching, call it through a variant that says what the call does
(read, write, destructive), and every call is on record.`,
		Example: `  mcpproxy demo
  mcpproxy serve
  mcpproxy tools search "create an issue"
  mcpproxy activity list --since 1h`,
		Version:       r.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          helpOrUnknown,
		Args:          cobra.ArbitraryArgs,
	}
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return r.checkFlags() }
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("mcpproxy {{.Version}}\n")
	flags := root.PersistentFlags()
	flags.StringVar(&r.configPath, "config", "", "configuration `file` (default ~/.mcpproxy/mcp_config.json, or $MCPPROXY_CONFIG)")
	flags.StringVar(&r.dataDir, "data-dir", "", "data `directory` (default ~/.mcpproxy, or $MCPPROXY_DATA_DIR)")
	flags.StringVarP(&r.output, "output", "o", formatTable, "`format` of the output: table, json or yaml")
	flags.BoolVar(&r.asJSON, "json", false, "short for --output json")
	flags.BoolVar(&r.noColor, "no-color", false, "no colours, even on a terminal")
	_ = root.RegisterFlagCompletionFunc("output", words(formatTable, formatJSON, formatYAML))
	root.AddCommand(demoCommand(r), serveCommand(r), stdioCommand(r), statusCommand(r), upstreamCommand(r), toolsCommand(r),
		approvalsCommand(r), callCommand(r), activityCommand(r), configCommand(r), completionCommand(r), versionCommand(r))
	root.SetHelpCommand(helpCommand(root))
	return root
}

// checkFlags settles the format of the output.
func (r *run) checkFlags() error {
	if r.asJSON {
		r.output = formatJSON
	}
	switch r.output {
	case formatTable, formatJSON, formatYAML:
		return nil
	}
	given := r.output
	r.output = formatTable
	return usage("Invalid value '"+given+"' for --output: must be table, json, or yaml", "Use -o json for programs.")
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [command]",
		Short:   "Help about a command",
		Example: "  mcpproxy help call tool-read",
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(root, strings.Join(args, " "))
			}
			return cmd.Help()
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			cmd, _, err := root.Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range cmd.Commands() {
				names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

func upstreamCommand(r *run) *cobra.Command {
	return group("upstream", "The servers behind MCPProxy",
		"  mcpproxy upstream list\n  mcpproxy upstream add files -- npx -y @modelcontextprotocol/server-filesystem /tmp\n"+
			"  mcpproxy upstream restart files\n  mcpproxy upstream review files",
		upstreamList(r), upstreamGet(r), upstreamRestart(r), upstreamLogin(r), upstreamLogout(r), upstreamLogs(r),
		upstreamAdd(r), upstreamRemove(r), upstreamEnable(r, "enable", true), upstreamEnable(r, "disable", false), upstreamSet(r),
		upstreamReview(r), upstreamApprove(r), upstreamQuarantine(r))
}

func toolsCommand(r *run) *cobra.Command {
	return group("tools", "The tools of all servers",
		"  mcpproxy tools list\n  mcpproxy tools search \"delete a repository\"\n  mcpproxy tools show github:delete_repo\n"+
			"  mcpproxy tools disable github:delete_repo\n  mcpproxy tools approve github:create_issue",
		toolsList(r), toolsSearch(r), toolsShow(r), toolsStats(r), toolsDiff(r), toolsApprove(r), toolsBlock(r),
		toolsSwitch(r, "enable", true), toolsSwitch(r, "disable", false))
}
