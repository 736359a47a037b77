package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// Run runs the command in args, which exclude the program's name, and returns the exit code.
func Run(ctx context.Context, args []string, d Deps) int {
	r := newRun(d)
	root := r.root()
	root.SetArgs(args)
	root.SetIn(r.Stdin)
	root.SetOut(r.Stdout)
	root.SetErr(r.Stderr)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return problem.ExitDone
	}
	p := asProblem(err)
	if corrected := withDash(ran, args); corrected != "" && p.Code == problem.Usage {
		p = usage(p.Message, "Put the command and its arguments behind --, as in `"+corrected+"`.")
	}
	if r.output == "" || r.output == formatTable {
		r.asJSON = r.asJSON || wantsJSON(args)
	}
	r.printError(p)
	return p.Code.ExitCode()
}

// asProblem converts an error. An error that is no problem comes from this program and is readable.
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

// wantsJSON finds -o json in arguments that could not be parsed.
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

// root builds the command tree.
func (r *run) root() *cobra.Command {
	r.output = formatTable
	root := r.tree(map[string]command{
		"mcpproxy": {flags: map[string]any{
			"config": &r.configPath, "data-dir": &r.dataDir, "output": &r.output, "json": &r.asJSON, "no-color": &r.noColor,
		}},
		"mcpproxy activity export":       activityExport(r),
		"mcpproxy activity list":         activityList(r),
		"mcpproxy activity redact":       activityRedact(r),
		"mcpproxy activity show":         activityShow(r),
		"mcpproxy activity summary":      activitySummary(r),
		"mcpproxy activity verify":       activityVerify(r),
		"mcpproxy activity watch":        activityWatch(r),
		"mcpproxy approvals":             {run: runOperation(r, api.ListApprovals, noInput, writeWaiting)},
		"mcpproxy call tool-destructive": callTool(r, policy.CallToolDestructive),
		"mcpproxy call tool-read":        callTool(r, policy.CallToolRead),
		"mcpproxy call tool-write":       callTool(r, policy.CallToolWrite),
		"mcpproxy can":                   canCommand(r),
		"mcpproxy completion":            completionCommand(r),
		"mcpproxy config confirm":        configConfirm(r),
		"mcpproxy config path":           configPathCommand(r),
		"mcpproxy config show":           configShow(r),
		"mcpproxy config validate":       configValidate(r),
		"mcpproxy connect":               connectCommand(r),
		"mcpproxy demo":                  demoCommand(r),
		"mcpproxy disconnect":            disconnectCommand(r),
		"mcpproxy doctor":                doctorCommand(r),
		"mcpproxy help":                  helpCommand(),
		"mcpproxy lease grant":           leaseGrant(r),
		"mcpproxy lease list":            {run: runOperation(r, api.ListLeases, noInput, writeLeases)},
		"mcpproxy lease revoke":          leaseRevoke(r),
		"mcpproxy pending approve":       pendingApprove(r),
		"mcpproxy pending deny":          pendingDeny(r),
		"mcpproxy pending list":          {run: runOperation(r, api.ListPending, noInput, writePending)},
		"mcpproxy pending show":          pendingShow(r),
		"mcpproxy secrets delete":        secretsDelete(r),
		"mcpproxy secrets list":          secretsList(r),
		"mcpproxy secrets set":           secretsSet(r),
		"mcpproxy profile list":          {run: runOperation(r, api.ListProfiles, noInput, writeProfiles)},
		"mcpproxy profile show":          profileShow(r),
		"mcpproxy permissions":           permissionsCommand(r),
		"mcpproxy policy try":            policyTry(r),
		"mcpproxy presence join":         presenceJoin(r),
		"mcpproxy presence reset":        presenceReset(r),
		"mcpproxy presence set":          presenceSet(r),
		"mcpproxy presence test":         presenceTest(r),
		"mcpproxy serve":                 serveCommand(r),
		"mcpproxy service install":       serviceInstall(r),
		"mcpproxy service status":        serviceStatus(r),
		"mcpproxy service uninstall":     serviceUninstall(r),
		"mcpproxy status":                statusCommand(r),
		"mcpproxy stdio":                 stdioCommand(r),
		"mcpproxy token create":          tokenCreate(r),
		"mcpproxy token list":            {run: runOperation(r, api.ListTokens, noInput, writeTokens)},
		"mcpproxy token revoke":          {complete: r.live(tokenNames), run: runOperation(r, api.RevokeToken, tokenNamed, writeRevoked)},
		"mcpproxy tools approve":         toolsApprove(r),
		"mcpproxy tools block":           toolsBlock(r),
		"mcpproxy tools diff":            toolsDiff(r),
		"mcpproxy tools disable":         {run: runOperation(r, api.DisableTool, toolNamed, writeSwitchedOff)},
		"mcpproxy tools enable":          {run: runOperation(r, api.EnableTool, toolNamed, writeSwitchedOn)},
		"mcpproxy tools list":            toolsList(r),
		"mcpproxy tools search":          toolsSearch(r),
		"mcpproxy tools show":            {run: runOperation(r, api.GetTool, toolNamed, writeTool)},
		"mcpproxy tools stats":           toolsStats(r),
		"mcpproxy tools unblock":         toolsUnblock(r),
		"mcpproxy ui":                    uiCommand(r),
		"mcpproxy upstream add":          upstreamAdd(r),
		"mcpproxy upstream approve":      upstreamApprove(r),
		"mcpproxy upstream disable":      {run: runChange(r, api.DisableServer, ops.OfflineAdmin.DisableServer, serverNamed, writeDisabled)},
		"mcpproxy upstream enable":       {run: runChange(r, api.EnableServer, ops.OfflineAdmin.EnableServer, serverNamed, writeEnabled)},
		"mcpproxy upstream import":       upstreamImport(r),
		"mcpproxy upstream get":          {run: runOperationAs(r, api.GetServer, serverNamed, plainServer, writeServer)},
		"mcpproxy upstream list":         {run: runOperationAs(r, api.ListServers, noInput, plainServers, writeServers)},
		"mcpproxy upstream login":        upstreamLogin(r),
		"mcpproxy upstream logout":       {run: runOperation(r, api.LogoutServer, serverNamed, writeLogout)},
		"mcpproxy upstream logs":         upstreamLogs(r),
		"mcpproxy upstream quarantine":   {run: runOperation(r, api.QuarantineServer, serverNamed, writeQuarantined)},
		"mcpproxy upstream remove":       upstreamRemove(r),
		"mcpproxy upstream restart":      upstreamRestart(r),
		"mcpproxy upstream review":       upstreamReview(r),
		"mcpproxy upstream set":          upstreamSet(r),
		"mcpproxy version":               versionCommand(r),
	})
	root.Version, root.SilenceErrors, root.SilenceUsage = r.Version, true, true
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return r.checkFlags() }
	if help, _, err := root.Find([]string{"help"}); err == nil {
		root.SetHelpCommand(help)
	}
	r.foldHelp(root)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	return root
}

// checkFlags sets the output format.
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

func helpCommand() command {
	return command{
		args: cobra.ArbitraryArgs,
		complete: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			cmd, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range cmd.Commands() {
				names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		run: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(cmd.Root(), strings.Join(args, " "))
			}
			return found.Help()
		},
	}
}
