package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/clients"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/ops/doctor"
	"mcpproxy/internal/store/activity"
)

// completionForValueKind returns the completion for an argument type: values from the daemon or fixed values. It
// returns nil if the type has no completion.
func (r *invocation) completionForValueKind(name string) cobra.CompletionFunc {
	values := map[string]completionFunc{
		"server": serverNames, "server:tool": toolNames, "profile": profileNames, "id": activityRecordIDs, "token": tokenNames,
	}[name]
	if values != nil {
		return r.completeFromDaemon(values)
	}
	if words := fixedValuesOfKind(name); words != nil {
		return newFixedCompletion(words...)
	}
	return nil
}

// fixedValues contains the functions that return the allowed values of enumerated arguments.
var fixedValues = map[string]func() []string{
	"client":        clients.ClientIDs,
	"operation":     func() []string { return api.ListActivity.AllowedValues("intent_type") },
	"sensitivity":   policy.Sensitivities,
	"trust":         config.TrustValues,
	"infer":         config.InferValues,
	"kind":          definitionKindNames,
	"check":         doctor.CodesAndNames,
	"tool status":   func() []string { return api.ListTools.AllowedValues("status") },
	"field":         func() []string { return activity.ErasableField("").Words() },
	"export format": func() []string { return api.ExportActivity.AllowedValues("format") },
	"group":         func() []string { return activity.GroupBy("").Words() },
	"record status": func() []string { return api.ListActivity.AllowedValues("status") },
	"record type":   func() []string { return append(slices.Clone(api.ListActivity.AllowedValues("type")), everyType) },
}

// fixedValuesOfKind returns the allowed values of an enumerated argument, for shell completion.
func fixedValuesOfKind(name string) []string {
	if values := fixedValues[name]; values != nil {
		return values()
	}
	if strings.Contains(name, "|") {
		return strings.Split(name, "|")
	}
	return nil
}

// definitionKindNames returns the names of the definition kinds, tools first.
func definitionKindNames() []string {
	return mapSlice(append([]tool.DefinitionKind{tool.KindTool}, tool.PrimitiveKinds()...), tool.DefinitionKind.Label)
}

// newFixedCompletion returns a completion that offers fixed words.
func newFixedCompletion(words ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(slices.Clone(words), cobra.ShellCompDirectiveNoFileComp)
}

// completeFirstArgument limits a completion to the first argument.
func completeFirstArgument(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

// completionTimeout limits how long a shell waits for values from the daemon. Deps.CompletionTimeout overrides it.
const completionTimeout = 200 * time.Millisecond

// completeFromDaemon returns a completion that offers values from the daemon. If the daemon does not answer, it offers
// none and reports no error.
func (r *invocation) completeFromDaemon(values completionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) (fitting []string, _ cobra.ShellCompDirective) {
		parent := cmd.Context()
		if parent == nil {
			parent = context.Background()
		}
		ctx, cancel := context.WithTimeout(parent, cmp.Or(r.CompletionTimeout, completionTimeout))
		defer cancel()
		if c, err := r.newDaemonClient(); err == nil {
			defer c.Close()
			for _, v := range values(ctx, c, typed) {
				if v = toOneLine(v); strings.HasPrefix(v, typed) {
					fitting = append(fitting, v)
				}
			}
		}
		return fitting, cobra.ShellCompDirectiveNoFileComp
	}
}

// mapSlice returns the results of f for the elements of a list, nil for an empty one.
func mapSlice[T, R any](all []T, f func(T) R) (out []R) {
	for _, one := range all {
		out = append(out, f(one))
	}
	return out
}

// completeCallerThenTool returns a completion that offers callers for the first argument and tools for the second.
func (r *invocation) completeCallerThenTool() cobra.CompletionFunc {
	who, what := r.completeFromDaemon(callerNames), r.completeFromDaemon(toolNames)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		switch len(args) {
		case 0:
			return who(cmd, args, typed)
		case 1:
			return what(cmd, args, typed)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

func callerNames(ctx context.Context, c *api.Client, typed string) []string {
	tokens := mapSlice(tokenNames(ctx, c, typed), func(name string) string { return "agent:" + name })
	return slices.Concat(clients.ClientIDs(), profileNames(ctx, c, typed), tokens)
}

// completionFunc returns the values that a completion offers. It returns none after an error.
type completionFunc = func(ctx context.Context, c *api.Client, typed string) []string

// namesFrom returns a completionFunc that returns the names in the result of an operation.
func namesFrom[In, Out, Row any](op *api.Op[In, Out], rows func(Out) []Row, name func(Row) string) completionFunc {
	return func(ctx context.Context, c *api.Client, _ string) []string {
		var all In
		out, _ := op.Call(ctx, c, all)
		return mapSlice(rows(out), name)
	}
}

var (
	tokenNames        = namesFrom(api.ListTokens, func(l ops.TokenList) []ops.TokenView { return l.Tokens }, func(t ops.TokenView) string { return t.Name })
	profileNames      = namesFrom(api.ListProfiles, func(l ops.ProfileList) []ops.ProfileView { return l.Profiles }, func(p ops.ProfileView) string { return p.Name })
	serverNames       = namesFrom(api.ListServers, func(l ops.ServerList) []ops.ServerRow { return l.Servers }, func(s ops.ServerRow) string { return s.Name })
	secretNames       = namesFrom(api.ListSecrets, func(l ops.SecretViews) []ops.SecretView { return l.Secrets }, func(s ops.SecretView) string { return s.Name })
	activityRecordIDs = namesFrom(api.ListActivity, func(l ops.ActivityList) []activity.Record { return l.Activities }, func(a activity.Record) string { return a.ID })
	pendingCallIDs    = namesFrom(api.ListPending, func(l ops.PendingList) []ops.PendingCall { return l.Pending }, func(q ops.PendingCall) string { return q.ID })
	leaseIDs          = namesFrom(api.ListLeases, func(l ops.LeaseList) []ops.LeaseView { return l.Leases }, func(l ops.LeaseView) string { return l.ID })
)

// toolNamesOfStatus returns a completion with the tools that have a status.
func toolNamesOfStatus(status string) completionFunc {
	return func(ctx context.Context, c *api.Client, _ string) []string {
		all, _ := fetchAllTools(ctx, c, ops.ToolQuery{ToolFilter: ops.ToolFilter{Status: status}})
		return mapSlice(all.Tools, func(t ops.ToolView) string { return t.Name })
	}
}

// waitingNames returns a completion with the definitions of the kind of a flag that wait, or with those of them that are wanted.
func waitingNames(kind *kindFlag, wanted func(waitingDefinition) bool) completionFunc {
	return func(ctx context.Context, c *api.Client, _ string) (names []string) {
		waiting, _ := api.ListApprovals.Call(ctx, c, ops.PendingApprovalsQuery{})
		for _, w := range toWaitingDefinitions(waiting) {
			if w.definition.Kind.Label() == string(*kind) && (wanted == nil || wanted(w)) {
				names = append(names, w.definition.qualifiedName())
			}
		}
		return names
	}
}

// definitionNames returns a completion with all tools or, for another kind, with the definitions of it that wait; of instructions the servers.
func definitionNames(kind *kindFlag) completionFunc {
	waiting := waitingNames(kind, nil)
	return func(ctx context.Context, c *api.Client, typed string) []string {
		switch k, _ := kind.parseKind(); k {
		case tool.KindTool:
			return toolNames(ctx, c, typed)
		case tool.KindInstructions:
			return serverNames(ctx, c, typed)
		}
		return waiting(ctx, c, typed)
	}
}

// activityFlagCompletions completes the flags that select records.
func (r *invocation) activityFlagCompletions() map[string]cobra.CompletionFunc {
	return map[string]cobra.CompletionFunc{"client": r.completeFromDaemon(recentClientNames), "tool": r.completeFromDaemon(toolNames)}
}

// recentClientNames returns the clients of the newest records.
func recentClientNames(ctx context.Context, c *api.Client, _ string) (names []string) {
	page, _ := api.ListActivity.Call(ctx, c, activity.Filter{})
	for i := range page.Activities {
		if name := page.Activities[i].ClientName; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// completeToolsOfServer returns a completion with the tools of the server that the first argument names, without its name.
func (r *invocation) completeToolsOfServer() cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return r.completeFromDaemon(func(ctx context.Context, c *api.Client, _ string) []string {
			all, _ := fetchAllTools(ctx, c, ops.ToolQuery{ToolFilter: ops.ToolFilter{Server: args[0]}})
			return mapSlice(all.Tools, func(t ops.ToolView) string { return t.Tool })
		})(cmd, args, typed)
	}
}

func toolNames(ctx context.Context, c *api.Client, _ string) []string {
	all, _ := fetchAllTools(ctx, c, ops.ToolQuery{})
	return mapSlice(all.Tools, func(t ops.ToolView) string { return t.Name })
}
