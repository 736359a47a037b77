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
	r := newInvocation(d)
	root := r.newRootCommand()
	root.SetArgs(args)
	root.SetIn(r.Stdin)
	root.SetOut(r.Stdout)
	root.SetErr(r.Stderr)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return problem.ExitDone
	}
	if errors.Is(err, errEndedByUser) {
		return problem.ExitInterrupted
	}
	p := toProblem(err)
	if corrected := suggestMissingDash(ran, args); corrected != "" && p.Code == problem.Usage {
		p = newUsageError(p.Message, "Write the command and its arguments after --, as in `"+corrected+"`.")
	}
	if r.output == "" || r.output == formatTable {
		r.asJSON = r.asJSON || hasJSONFlag(args)
	}
	r.printError(p)
	return p.Code.ExitCode()
}

// toProblem converts an error to a problem. An error that is not yet a problem comes from this program, so its text can
// be shown to the user.
func toProblem(err error) *problem.Problem {
	var p *problem.Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, context.Canceled):
		return problem.New(problem.Interrupted, "Interrupted.", "")
	}
	return problem.New(problem.Internal, capitalizeFirst(err.Error()), "")
}

// hasJSONFlag reports whether arguments that could not be parsed have -o json.
func hasJSONFlag(args []string) bool {
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

// NewRootCommand returns the command tree. A release generates its manual pages from it.
func NewRootCommand() *cobra.Command { return newInvocation(Deps{}).newRootCommand() }

// newRootCommand builds the command tree.
func (r *invocation) newRootCommand() *cobra.Command {
	r.output = formatTable
	root := r.newCommandTree(map[string]commandSpec{
		"mcpproxy": {flags: map[string]any{
			"config": &r.configPath, "data-dir": &r.dataDir, "output": &r.output, "json": &r.asJSON, "no-color": &r.noColor, "no-pager": &r.noPager,
		}},
		"mcpproxy activity export":       newActivityExportCommand(r),
		"mcpproxy activity list":         newActivityListCommand(r),
		"mcpproxy activity redact":       newActivityRedactCommand(r),
		"mcpproxy activity show":         newActivityShowCommand(r),
		"mcpproxy activity summary":      newActivitySummaryCommand(r),
		"mcpproxy activity verify":       newActivityVerifyCommand(r),
		"mcpproxy activity watch":        newActivityWatchCommand(r),
		"mcpproxy approvals":             newApprovalsCommand(r),
		"mcpproxy approvals list":        newApprovalsCommand(r),
		"mcpproxy call tool-destructive": newCallCommand(r, policy.CallToolDestructive),
		"mcpproxy call tool-read":        newCallCommand(r, policy.CallToolRead),
		"mcpproxy call tool-write":       newCallCommand(r, policy.CallToolWrite),
		"mcpproxy can":                   newCanCommand(r),
		"mcpproxy completion":            newCompletionCommand(r),
		"mcpproxy config confirm":        newConfigConfirmCommand(r),
		"mcpproxy config path":           newConfigPathCommand(r),
		"mcpproxy config show":           newConfigShowCommand(r),
		"mcpproxy config validate":       newConfigValidateCommand(r),
		"mcpproxy clients list":          newClientsListCommand(r),
		"mcpproxy connect":               newConnectCommand(r),
		"mcpproxy demo":                  newDemoCommand(r),
		"mcpproxy disconnect":            newDisconnectCommand(r),
		"mcpproxy doctor":                newDoctorCommand(r),
		"mcpproxy help":                  newHelpCommand(),
		"mcpproxy lease grant":           newLeaseGrantCommand(r),
		"mcpproxy lease list":            {run: operationRunFunc(r, api.ListLeases, zeroInput, writeLeases)},
		"mcpproxy lease revoke":          newLeaseRevokeCommand(r),
		"mcpproxy notify test":           newNotifyTestCommand(r),
		"mcpproxy login":                 newLoginCommand(r),
		"mcpproxy pause":                 newPauseCommand(r), "mcpproxy resume": {run: operationRunFunc(r, api.ResumeCalls, zeroInput, writeResumed)},
		"mcpproxy pending approve": newPendingApproveCommand(r),
		"mcpproxy pending deny":    newPendingDenyCommand(r),
		"mcpproxy pending list":    {run: operationRunFunc(r, api.ListPending, zeroInput, writePendingCalls)},
		"mcpproxy pending show":    newPendingShowCommand(r),
		"mcpproxy secrets delete":  newSecretsDeleteCommand(r),
		"mcpproxy secrets list":    {run: showResultRunFunc(r, r.fetchSecrets, writeSecrets)},
		"mcpproxy secrets set":     newSecretsSetCommand(r),
		"mcpproxy profile list":    {run: operationRunFunc(r, api.ListProfiles, zeroInput, writeProfileTable)},
		"mcpproxy profile show":    newProfileShowCommand(r),
		"mcpproxy permissions":     newPermissionsCommand(r),
		"mcpproxy policy try":      newPolicyTryCommand(r), "mcpproxy registry search": newRegistrySearchCommand(r), "mcpproxy registry show": newRegistryShowCommand(r),
		"mcpproxy presence join":       newPresenceJoinCommand(r),
		"mcpproxy presence reset":      newPresenceResetCommand(r),
		"mcpproxy presence set":        newPresenceSetCommand(r),
		"mcpproxy presence test":       newPresenceTestCommand(r),
		"mcpproxy serve":               newServeCommand(r),
		"mcpproxy service install":     newServiceInstallCommand(r),
		"mcpproxy service status":      newServiceStatusCommand(r),
		"mcpproxy service uninstall":   newServiceUninstallCommand(r),
		"mcpproxy status":              newStatusCommand(r),
		"mcpproxy stdio":               newStdioCommand(r),
		"mcpproxy token create":        newTokenCreateCommand(r),
		"mcpproxy token list":          {run: operationRunFunc(r, api.ListTokens, zeroInput, writeTokenTable)},
		"mcpproxy token revoke":        {complete: r.completeFromDaemon(tokenNames), run: operationRunFunc(r, api.RevokeToken, parseTokenRef, writeRevokedToken)},
		"mcpproxy tools approve":       newToolsApproveCommand(r),
		"mcpproxy tools block":         newBlockOrUnblockCommand(r, blockDefinition),
		"mcpproxy tools diff":          newToolsDiffCommand(r),
		"mcpproxy tools disable":       {run: operationRunFunc(r, api.DisableTool, parseToolRef, func(p *printer, v ops.ToolView) { p.writeLine("%s is disabled.", toOneLine(v.Name)) })},
		"mcpproxy tools enable":        {complete: completeFirstArgument(r.completeFromDaemon(toolNamesOfStatus(policy.DisabledByUser.String()))), run: operationRunFunc(r, api.EnableTool, parseToolRef, writeToolEnabled)},
		"mcpproxy tools list":          newToolsListCommand(r),
		"mcpproxy tools search":        newToolsSearchCommand(r),
		"mcpproxy tools set":           newToolsSetCommand(r),
		"mcpproxy tools show":          {run: operationRunFunc(r, api.GetTool, parseToolRef, writeToolDetail)},
		"mcpproxy tools stats":         newToolsStatsCommand(r),
		"mcpproxy tools unblock":       newBlockOrUnblockCommand(r, unblockDefinition),
		"mcpproxy ui":                  newUICommand(r),
		"mcpproxy upstream add":        newUpstreamAddCommand(r),
		"mcpproxy upstream approve":    newUpstreamApproveCommand(r),
		"mcpproxy upstream disable":    {run: configChangeRunFunc(r, api.DisableServer, ops.OfflineAdmin.DisableServer, parseServerRef, writeServerDisabled)},
		"mcpproxy upstream enable":     {run: configChangeRunFunc(r, api.EnableServer, ops.OfflineAdmin.EnableServer, parseServerRef, writeServerEnabled)},
		"mcpproxy upstream import":     newUpstreamImportCommand(r),
		"mcpproxy upstream get":        {run: convertedOperationRunFunc(r, api.GetServer, parseServerRef, toServerView, writeServerDetail)},
		"mcpproxy upstream list":       {run: convertedOperationRunFunc(r, api.ListServers, zeroInput, toServerViews, writeServerTable)},
		"mcpproxy upstream login":      newUpstreamLoginCommand(r),
		"mcpproxy upstream logout":     {run: operationRunFunc(r, api.LogoutServer, parseServerRef, func(p *printer, s ops.ServerView) { p.writeLine("Logged out of %s.", toOneLine(s.Name)) })},
		"mcpproxy upstream logs":       newUpstreamLogsCommand(r),
		"mcpproxy upstream quarantine": {run: operationRunFunc(r, api.QuarantineServer, parseServerRef, writeServerQuarantined)},
		"mcpproxy upstream remove":     newUpstreamRemoveCommand(r),
		"mcpproxy upstream restart":    newUpstreamRestartCommand(r),
		"mcpproxy upstream review":     newUpstreamReviewCommand(r),
		"mcpproxy upstream set":        newUpstreamSetCommand(r),
		"mcpproxy upstream outdated":   {run: operationRunFunc(r, api.ListOutdated, zeroInput, writeOutdated)}, "mcpproxy upstream rollback": newUpstreamRollbackCommand(r), "mcpproxy upstream update": newUpstreamUpdateCommand(r), "mcpproxy sandbox suggest": {run: operationRunFunc(r, api.SuggestSandbox, parseServerRef, writeSuggestion)},
		"mcpproxy version": newVersionCommand(r),
	})
	root.Version, root.SilenceErrors, root.SilenceUsage = r.Version, true, true
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return r.resolveOutputFormat() }
	if help, _, err := root.Find([]string{"help"}); err == nil {
		root.SetHelpCommand(help)
	}
	r.wrapHelpOutput(root)
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(toFlagUsageError)
	return root
}

// resolveOutputFormat sets the output format from the flags, and rejects an invalid one.
func (r *invocation) resolveOutputFormat() error {
	if r.asJSON {
		r.output = formatJSON
	}
	given := r.output
	switch given {
	case formatTable:
		return nil
	case formatWide:
		r.output, r.wide = formatTable, true
		return nil
	case formatJSON, formatYAML:
		if !r.quiet {
			return nil
		}
		return newUsageError("-q and -o "+given+" exclude one another.", "Give one of them.")
	}
	r.output = formatTable
	return newUsageError("Invalid value '"+given+"' for --output: must be table, wide, json, or yaml", "Use -o json for programs.")
}

func newHelpCommand() commandSpec {
	return commandSpec{
		args: cobra.ArbitraryArgs,
		complete: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			cmd, _, err := cmd.Root().Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range cmd.Commands() {
				if !c.Hidden {
					names = append(names, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		run: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommandError(cmd.Root(), strings.Join(args, " "))
			}
			return found.Help()
		},
	}
}
