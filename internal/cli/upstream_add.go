package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/redact"
)

func newUpstreamAddCommand(r *invocation) commandSpec {
	var s ops.AddServerRequest
	var env, headers []string
	var entry registryFlags
	return commandSpec{
		flags: map[string]any{
			"url": &s.URL, "env": &env, "header": &headers, "working-dir": &s.WorkingDir,
			"trust": &s.Trust, "quarantined": &s.Quarantined,
			"registry": &entry.name, "from": &entry.from, "option": &entry.option, "arg": &entry.args,
		},
		args: checkAddServerArguments,
		complete: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp // no completion for a new name
			}
			return nil, cobra.ShellCompDirectiveDefault // completes file names after the command
		},
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) (err error) {
			if entry.name != "" {
				return addFromRegistry(r, ctx, c, entry, strings.Join(args, ""), env, headers)
			}
			s.Name = args[0]
			if len(args) > 1 {
				s.Command, s.Args = args[1], args[2:]
			}
			if s.Env, err = parsePairs("--env", env, "="); err != nil {
				return err
			}
			if s.Headers, err = parsePairs("--header", headers, ":"); err != nil {
				return err
			}
			return addServer(r, ctx, c, s)
		}),
	}
}

func addServer(r *invocation, ctx context.Context, c *api.Client, s ops.AddServerRequest) error {
	offline := false
	added, err := callDaemonOrOffline(r, ctx, c, api.AddServer, s, func(f ops.OfflineAdmin, s ops.AddServerRequest) (ops.ServerView, error) {
		offline = true
		return f.AddServer(s)
	})
	if err != nil {
		return err
	}
	v := added
	if !offline {
		if v, err = awaitFirstStart(r, ctx, c, added); err != nil {
			return err
		}
		v.Warnings = added.Warnings
	}
	if err := r.printOutput(v, func(p *printer) { writeServerAdded(p, v, offline) }); err != nil || offline || v.Quarantined {
		return err
	}
	return notReadyError(v, "did not start", "It stays configured, and MCPProxy keeps trying. See `mcpproxy upstream logs "+shellQuoteWord(v.Name)+
		"`. Change it with `mcpproxy upstream set`, or remove it with `mcpproxy upstream remove "+shellQuoteWord(v.Name)+"`.")
}

// The poll interval and the timeout of waiting for an added server.
const (
	startCheckInterval = 100 * time.Millisecond
	startWaitTimeout   = time.Minute
)

// awaitFirstStart waits until the first start of a server has ended and returns the server. The server is then ready,
// has failed or does not start automatically.
func awaitFirstStart(r *invocation, ctx context.Context, c *api.Client, v ops.ServerView) (ops.ServerView, error) {
	look, limit := time.NewTicker(startCheckInterval), time.NewTimer(startWaitTimeout)
	defer look.Stop()
	defer limit.Stop()
	for told := false; isStarting(v); {
		if v.Trouble != "" {
			return v, nil // the start may take minutes
		}
		if v.State == "connecting" && !told {
			told = true
			r.printMessage("Waiting until %s is ready.", toOneLine(v.Name))
		}
		select {
		case <-ctx.Done():
			return v, problem.Newf(problem.Interrupted, "Interrupted. Server '%s' stays configured and keeps starting.", v.Name).
				WithHint("See `mcpproxy upstream get " + shellQuoteWord(v.Name) + "`.")
		case <-limit.C:
			return v, nil
		case <-look.C:
		}
		next, err := api.GetServer.Call(ctx, c, ops.ServerRef{Name: v.Name})
		if ctx.Err() == nil {
			if err != nil {
				return v, err
			}
			v = next.ServerView
		}
	}
	return v, nil
}

// isStarting reports whether the first start of a server is still in progress.
func isStarting(v ops.ServerView) bool {
	return v.Enabled && !v.Quarantined && (v.State == "stopped" || v.State == "connecting")
}

// checkAddServerArguments validates the arguments: a name, and either a command after -- or --url.
func checkAddServerArguments(cmd *cobra.Command, args []string) error {
	url, dash := cmd.Flags().Changed("url"), cmd.ArgsLenAtDash()
	switch {
	case cmd.Flags().Changed("registry"):
		if url || dash >= 0 || len(args) > 1 {
			return newUsageError("A server from a registry has no --url and no command.", "Usage: `mcpproxy upstream add [name] --registry NAME[@VERSION]`.")
		}
		return nil
	case cmd.Flags().Changed("from") || cmd.Flags().Changed("option") || cmd.Flags().Changed("arg"):
		return newUsageError("--from, --option and --arg are for a server from a registry.", "Name the server with --registry.")
	case len(args) == 0 || dash == 0:
		return newUsageError("Missing argument: name.", "Usage: `"+cmd.UseLine()+"`.")
	case dash < 0 && len(args) == 2 && strings.Contains(args[1], "://"):
		return newUsageError("Unexpected argument '"+args[1]+"'.", "Pass the URL of a server with --url: `mcpproxy upstream add "+shellQuoteWord(args[0])+" --url "+shellQuoteWord(args[1])+"`.")
	case dash > 1 || dash < 0 && len(args) > 1:
		return newUsageError("Unexpected argument '"+args[1]+"'.", "Write the command and its arguments after --, as in `mcpproxy upstream add "+shellQuoteWord(args[0])+" -- npx -y PACKAGE`.")
	case url && len(args) > 1:
		return newUsageError("A server has a URL or a command, not both.", "Usage: `"+cmd.UseLine()+"`.")
	case !url && len(args) == 1:
		return newUsageError("Missing --url or a command.", "Usage: `"+cmd.UseLine()+"`.")
	}
	return nil
}

// suggestMissingDash returns the command line of `upstream add` with a missing -- added, or "" if none is missing. The
// result contains no value that may be a secret.
func suggestMissingDash(cmd *cobra.Command, args []string) string {
	at := slices.Index(args, "add")
	if cmd.CommandPath() != "mcpproxy upstream add" || at < 0 || slices.Contains(args, "--") || slices.ContainsFunc(args, isURL) {
		return ""
	}
	own, name, words := []string{}, "", args[at+1:]
	for i := 0; i < len(words); i++ {
		flag := lookupFlag(cmd, words[i])
		switch {
		case flag != nil:
			own = append(own, "--"+flag.Name)
			if flag.NoOptDefVal == "" {
				own = append(own, "…")
				if !strings.Contains(words[i], "=") {
					i++
				}
			}
		case strings.HasPrefix(words[i], "-"):
			return ""
		case name == "":
			name = words[i]
		default:
			launch := append([]string{words[i]}, redact.Args(words[i+1:])...)
			if len(launch) == 1 && launch[0] == "npx" {
				launch = append(launch, "-y", "PACKAGE")
			}
			shown := append([]string{"mcpproxy", "upstream", "add", shellQuoteWord(name)}, own...)
			return strings.Join(append(shown, "--", shellQuoteWords(launch...)), " ")
		}
	}
	return ""
}

func isURL(word string) bool { return strings.Contains(word, "://") }

// lookupFlag returns the flag that a word names, or nil if the command has no such flag.
func lookupFlag(cmd *cobra.Command, word string) *pflag.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	switch {
	case name == "":
	case strings.HasPrefix(word, "--"):
		return cmd.Flags().Lookup(name)
	case strings.HasPrefix(word, "-") && len(name) == 1:
		return cmd.Flags().ShorthandLookup(name)
	}
	return nil
}

// parsePairs parses names with values, such as NAME=VALUE. Its errors contain no value, because a value may be a
// secret.
func parsePairs(flag string, given []string, between string) (map[string]string, error) {
	if len(given) == 0 {
		return nil, nil
	}
	out := map[string]string{}
	for _, pair := range given {
		name, value, ok := strings.Cut(pair, between)
		if between == ":" {
			name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		}
		if !ok || name == "" {
			return nil, newUsageError("Invalid value for "+flag+": it must be a name and a value, separated by '"+between+"'.", "")
		}
		if _, twice := out[name]; twice {
			return nil, newUsageError("Invalid value for "+flag+": "+name+" is given twice.", "")
		}
		out[name] = value
	}
	return out, nil
}

func writeServerAdded(p *printer, v ops.ServerView, offline bool) {
	switch {
	case offline:
		p.writeLine("Added %s.", toOneLine(v.Name))
	case v.State == "ready":
		p.writeLine("Added %s: it is %s, with %s", toOneLine(v.Name), formatServerState(p, v), readyToolsText(v))
	case v.State == "connecting":
		p.writeLine("Added %s: it is still %s.", toOneLine(v.Name), formatServerState(p, v))
		p.addNote("Check its state with `mcpproxy upstream get %s`.", shellQuoteWord(v.Name))
	default:
		p.writeLine("Added %s%s.", toOneLine(v.Name), serverOutcomeText(p, v))
	}
	noteServerWarnings(p, v)
	if v.Quarantined {
		p.addNote("To approve and start it, run `mcpproxy upstream approve %s`.", shellQuoteWord(v.Name))
	}
}

// readyToolsText describes how many tools a ready server has and how many of them wait for approval.
func readyToolsText(v ops.ServerView) string {
	s := countWithNoun(v.ToolCount, "tool")
	if v.Tools == nil || v.Tools[policy.PendingApproval] == 0 {
		return s + "."
	}
	n := v.Tools[policy.PendingApproval]
	return s + ", " + strconv.Itoa(n) + map[bool]string{true: " waits", false: " wait"}[n == 1] + " for approval: mcpproxy approvals"
}

func noteServerWarnings(p *printer, v ops.ServerView) {
	p.addNotes(mapSlice(v.Warnings, toOneLine))
}

func newUpstreamRemoveCommand(r *invocation) commandSpec {
	var given confirmationFlags
	return commandSpec{flags: map[string]any{"yes": &given.yes}, run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
		offline := false
		s, err := callDaemonOrOffline(r, ctx, c, api.GetServer, ops.ServerRef{Name: args[0]}, func(f ops.OfflineAdmin, in ops.ServerRef) (s ops.ServerDetail, err error) {
			offline = true
			s.ServerView, err = f.Server(in)
			return s, err
		})
		if err != nil {
			return err
		}
		question := "Remove " + escapeInvisibleLine(s.Name) + " and delete its approvals?"
		if offline {
			question = "Remove " + escapeInvisibleLine(s.Name) + " from the configuration file?"
		}
		if err := r.requireConfirmation(ctx, given, question, "Run `mcpproxy upstream remove "+shellQuoteWord(s.Name)+" --yes`."); err != nil {
			return err
		}
		gone, err := callDaemonOrOffline(r, ctx, c, api.RemoveServer, ops.ServerRef{Name: s.Name}, ops.OfflineAdmin.RemoveServer)
		if err != nil {
			return err
		}
		return r.printOutput(gone, func(p *printer) {
			p.writeLine("Removed %s.", toOneLine(gone.Removed))
			if offline {
				p.addNote("MCPProxy is not running, so the approvals and the login of %s are kept. They apply again to a server with this name.", toOneLine(gone.Removed))
			}
		})
	})}
}

func writeServerDisabled(p *printer, v ops.ServerView) {
	p.writeLine("%s is disabled.", toOneLine(v.Name))
	noteServerWarnings(p, v)
}

func writeServerEnabled(p *printer, v ops.ServerView) {
	p.writeLine("%s is enabled.", toOneLine(v.Name))
	noteServerWarnings(p, v)
	if v.Quarantined {
		p.addNote("It is still quarantined. To review it, run `mcpproxy upstream approve %s`.", shellQuoteWord(v.Name))
	}
}

func writeServerQuarantined(p *printer, v ops.ServerView) {
	p.writeLine("%s is quarantined.", toOneLine(v.Name))
	p.addNote("To review it, run `mcpproxy upstream approve %s`.", shellQuoteWord(v.Name))
}
