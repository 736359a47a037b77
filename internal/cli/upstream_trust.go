package cli

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/gateway"
	"mcpproxy/internal/policy"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/scan"
	"mcpproxy/internal/strictjson"
)

func (r *run) upstreamAdd() *cobra.Command {
	var s gateway.NewServer
	var env, headers []string
	cmd := &cobra.Command{
		Use:   "add <name> (--url <url> | -- <command> [argument]...)",
		Short: "Write a server into the configuration file",
		Long: `Writes a server into the configuration file, keeping its comments and order, and
puts it into effect. What you add yourself is started at once; with --quarantined
only after a review.

Values of --env and --header may hold references such as ${env:GITHUB_TOKEN}, so that a
secret need not stand in the file (quote them, or the shell takes them).`,
		Example: "  mcpproxy upstream add files -- npx -y @modelcontextprotocol/server-filesystem /tmp\n" +
			"  mcpproxy upstream add remote --url https://example.com/mcp --header 'Authorization: Bearer ${env:REMOTE_TOKEN}'\n" +
			"  mcpproxy upstream add tickets --env 'TOKEN=${env:TICKETS_TOKEN}' --trust manual -- tickets-mcp --stdio",
		Args: launchArguments,
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp // a new name
			}
			return nil, cobra.ShellCompDirectiveDefault // files, behind the command
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			s.Name = args[0]
			if len(args) > 1 {
				s.Command, s.Args = args[1], args[2:]
			}
			var err error
			if s.Env, err = pairs("--env", env, "="); err != nil {
				return err
			}
			if s.Headers, err = pairs("--header", headers, ":"); err != nil {
				return err
			}
			return r.ask(func(ctx context.Context, c *api.Client, _ []string) error { return r.addServer(ctx, c, s) })(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.URL, "url", "", "where the server answers (`URL`)")
	flags.StringArrayVar(&env, "env", nil, "environment variable `NAME=VALUE` of the command; may be repeated")
	flags.StringArrayVar(&headers, "header", nil, "header `'NAME: VALUE'` for the URL; may be repeated")
	flags.StringVar(&s.WorkingDir, "working-dir", "", "`directory` that the command starts in")
	flags.StringVar(&s.Trust, "trust", "", "what becomes of tools that nobody has approved: `trust` manual, scan or auto")
	flags.BoolVar(&s.Quarantined, "quarantined", false, "review the server before it is started")
	_ = cmd.RegisterFlagCompletionFunc("trust", words("manual", "scan", "auto"))
	return cmd
}

// launchArguments takes a name and, after --, a command; or a name and --url.
func launchArguments(cmd *cobra.Command, args []string) error {
	url, dash := cmd.Flags().Changed("url"), cmd.ArgsLenAtDash()
	switch {
	case len(args) == 0 || dash == 0:
		return usage("Missing argument: name.", "Usage: `"+cmd.UseLine()+"`.")
	case dash > 1 || dash < 0 && len(args) > 1:
		return usage("Unexpected argument '"+args[1]+"'.", "Put the command and its arguments behind --, as in `mcpproxy upstream add "+quotedWord(args[0])+" -- npx -y PACKAGE`.")
	case url && len(args) > 1:
		return usage("A server has a URL or a command, not both.", "Usage: `"+cmd.UseLine()+"`.")
	case !url && len(args) == 1:
		return usage("How is the server reached? There is neither --url nor a command.", "Usage: `"+cmd.UseLine()+"`.")
	}
	return nil
}

// pairs reads names with values. A value is not repeated in the error: it may
// be a secret.
func pairs(flag string, given []string, between string) (map[string]string, error) {
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
			return nil, usage("Invalid value for "+flag+": it must be a name and a value with '"+between+"' between them.", "")
		}
		if _, twice := out[name]; twice {
			return nil, usage("Invalid value for "+flag+": "+name+" is given twice.", "")
		}
		out[name] = value
	}
	return out, nil
}

func (r *run) addServer(ctx context.Context, c *api.Client, s gateway.NewServer) error {
	v, err := c.AddServer(ctx, s)
	if err != nil {
		return err
	}
	return r.print(v, func(w io.Writer) {
		fmt.Fprintf(w, "Added %s: it is now %s.\n", oneLine(v.Name), r.state(v))
		if v.Quarantined {
			r.note("It is not started before you have approved it: `mcpproxy upstream approve %s`.", quotedWord(v.Name))
		}
	})
}

func (r *run) upstreamRemove() *cobra.Command {
	var given consent
	cmd := &cobra.Command{
		Use:   "remove <server>",
		Short: "Take a server out of the configuration file",
		Long: `Takes a server out of the configuration file, or drops one that was proposed, and
forgets what was approved of it.`,
		Example:           "  mcpproxy upstream remove github\n  mcpproxy upstream remove github --yes",
		Args:              exactly("server"),
		ValidArgsFunction: r.complete(serverNames),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			s, err := c.Server(ctx, args[0])
			if err != nil {
				return err
			}
			if err := r.consented(ctx, given, "Remove "+visibleLine(s.Name)+" and forget its approvals?",
				"Say `mcpproxy upstream remove "+quotedWord(s.Name)+" --yes`."); err != nil {
				return err
			}
			gone, err := c.RemoveServer(ctx, s.Name)
			if err != nil {
				return err
			}
			return r.print(gone, func(w io.Writer) { fmt.Fprintf(w, "Removed %s.\n", oneLine(gone.Removed)) })
		}),
	}
	given.yesFlag(cmd)
	return cmd
}

func (r *run) upstreamEnable(use string, on bool) *cobra.Command {
	short, done := "Stop a server and keep it stopped", "disabled"
	if on {
		short, done = "Start a server that was disabled", "enabled"
	}
	return &cobra.Command{
		Use:               use + " <server>",
		Short:             short,
		Long:              short + ". It is written into the configuration file.",
		Example:           "  mcpproxy upstream " + use + " github",
		Args:              exactly("server"),
		ValidArgsFunction: r.complete(serverNames),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			v, err := c.EnableServer(ctx, args[0], on)
			if err != nil {
				return err
			}
			return r.print(v, func(w io.Writer) {
				fmt.Fprintf(w, "%s is %s.\n", oneLine(v.Name), done)
				if on && v.Quarantined {
					r.note("It is quarantined all the same: `mcpproxy upstream approve %s`.", quotedWord(v.Name))
				}
			})
		}),
	}
}

func (r *run) upstreamQuarantine() *cobra.Command {
	return &cobra.Command{
		Use:               "quarantine <server>",
		Short:             "Put a server into quarantine",
		Long:              "Stops a server until it is reviewed and approved again. Nothing of it but its name reaches an agent.",
		Example:           "  mcpproxy upstream quarantine github",
		Args:              exactly("server"),
		ValidArgsFunction: r.complete(serverNames),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			v, err := c.QuarantineServer(ctx, args[0])
			if err != nil {
				return err
			}
			return r.print(v, func(w io.Writer) {
				fmt.Fprintf(w, "%s is quarantined.\n", oneLine(v.Name))
				r.note("Look at it again with `mcpproxy upstream approve %s`.", quotedWord(v.Name))
			})
		}),
	}
}

func (r *run) upstreamReview() *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:   "review <server>",
		Short: "What an approval of a server would allow",
		Long: `Shows what is to be looked at before a server is approved: the exact command with its
arguments and the names of its environment variables, or the URL; then, once that
is approved and the server runs for the review, its instructions and tools with
what the scanner found.`,
		Example:           "  mcpproxy upstream review github\n  mcpproxy upstream review github --full",
		Args:              exactly("server"),
		ValidArgsFunction: r.complete(waitingServers),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			v, err := c.ReviewServer(ctx, args[0])
			if err != nil {
				return err
			}
			return r.print(v, func(w io.Writer) { r.writeReview(w, v, full) })
		}),
	}
	cmd.Flags().BoolVar(&full, "full", false, "the whole definitions of the tools")
	return cmd
}

func (r *run) upstreamApprove() *cobra.Command {
	var given consent
	var withFindings bool
	cmd := &cobra.Command{
		Use:   "approve <server>",
		Short: "Approve a server that waits for review",
		Long: `Approves a server in two steps. First how it is launched: only then is it started,
and for the review alone. Then its instructions and tools: only then can they be
called. Each step shows what would be approved and asks; what is approved is
exactly what was shown. A server that is still starting is waited for.

Without a terminal give --fingerprint, as an earlier review shows it, or --yes. With
--yes alone nothing is approved that the scanner has found something in.`,
		Example: "  mcpproxy upstream approve github\n  mcpproxy upstream approve github --fingerprint 4f2a…",
		Args:    exactly("server"), ValidArgsFunction: r.complete(waitingServers),
		RunE: r.ask(func(ctx context.Context, c *api.Client, args []string) error {
			return r.approveServer(ctx, c, args[0], given, withFindings)
		}),
	}
	given.flags(cmd, "launch or definitions")
	cmd.Flags().BoolVar(&withFindings, "with-findings", false, "with --yes: approve also what the scanner has found something in")
	return cmd
}

func (r *run) approveServer(ctx context.Context, c *api.Client, name string, given consent, withFindings bool) error {
	fingerprint := given.fingerprint
	if fingerprint == "" {
		v, err := r.reviewOnceTold(ctx, c, name)
		if err != nil {
			return err
		}
		if r.output == formatTable {
			r.writeReview(r.Stdout, v, waitingIn(v) > 0) // what is approved is what was shown
			fmt.Fprintln(r.Stdout)
		}
		switch {
		case v.Stage == gateway.StageApproved && waitingIn(v) == 0:
			return r.print(v, func(w io.Writer) { fmt.Fprintf(w, "Nothing of %s waits.\n", oneLine(v.Name)) })
		case v.Stage == gateway.StageDefinitions && !v.Listed:
			return problem.Newf(problem.ServerUnavailable, "Server '%s' has not told its tools yet, so there is nothing to approve.", oneLine(v.Name)).
				WithHint("Wait until it is ready, or see `mcpproxy upstream logs " + quotedWord(v.Name) + "`.")
		case given.yes && !withFindings && v.Stage != gateway.StageLaunch && findingsIn(v) > 0:
			return problem.Newf(problem.ToolLocked, "The scanner has found something in %s, so --yes is not enough.", oneLine(v.Name)).
				WithHint("Look with `mcpproxy upstream review " + quotedWord(v.Name) + "`, then add --with-findings, or --fingerprint " + visibleLine(v.Fingerprint) + ".")
		}
		if err := r.consented(ctx, given, approvalQuestion(v), seeThenSay("upstream review", "upstream approve", v.Name, v.Fingerprint)); err != nil {
			return err
		}
		fingerprint = v.Fingerprint
	}
	v, err := c.ApproveServer(ctx, name, fingerprint)
	if err != nil {
		return lookAgain(err, "approved", "mcpproxy upstream review "+quotedWord(name))
	}
	return r.print(v, func(w io.Writer) {
		switch {
		case v.Stage == gateway.StageApproved && disabled(v):
			fmt.Fprintf(w, "Approved %s.\n", oneLine(v.Name))
			r.note("It is disabled: `mcpproxy upstream enable %s`.", quotedWord(v.Name))
			return
		case v.Stage == gateway.StageApproved:
			fmt.Fprintf(w, "Approved %s: its tools can be called.\n", oneLine(v.Name))
			return
		}
		fmt.Fprintf(w, "Approved how %s is launched: it runs for the review only.\n", oneLine(v.Name))
		r.note("Look at its tools and approve them: `mcpproxy upstream approve %s`.", quotedWord(v.Name))
	})
}

// How often, and for how long, it is asked whether a server that is starting
// for its review has told its tools.
const (
	lookReview = 100 * time.Millisecond
	awaitTold  = time.Minute
)

// reviewOnceTold gives what an approval would allow. A server that is just
// starting for its review is waited for: without its tools there is nothing to
// approve.
func (r *run) reviewOnceTold(ctx context.Context, c *api.Client, name string) (gateway.ServerReview, error) {
	v, err := c.ReviewServer(ctx, name)
	if err != nil || !starting(v) {
		return v, err
	}
	if s, err := c.Server(ctx, name); err != nil || !s.Enabled {
		return v, err
	}
	r.note("Waiting until %s has told its tools.", oneLine(v.Name))
	look, limit := time.NewTicker(lookReview), time.NewTimer(awaitTold)
	defer look.Stop()
	defer limit.Stop()
	for err == nil && starting(v) {
		select {
		case <-ctx.Done():
			return v, ctx.Err()
		case <-limit.C:
			return v, nil
		case <-look.C:
		}
		v, err = c.ReviewServer(ctx, name)
	}
	return v, err
}

// starting says whether the tools of a server may come by themselves, as it is
// tried for the first time.
func starting(v gateway.ServerReview) bool {
	return v.Stage == gateway.StageDefinitions && !v.Listed && v.LastError == "" && slices.Contains([]string{"stopped", "connecting", "ready"}, v.State)
}

// disabled says whether a server that is approved cannot be called all the same.
func disabled(v gateway.ServerReview) bool {
	return slices.ContainsFunc(v.Tools, func(t gateway.ReviewedTool) bool { return t.Status == policy.ServerDisabled.String() })
}

func approvalQuestion(v gateway.ServerReview) string {
	name := visibleLine(v.Name)
	switch {
	case v.Stage == gateway.StageLaunch:
		return "Start " + name + " like this, for the review only?"
	case findingsIn(v) > 0:
		return "The scanner has " + counted(findingsIn(v), "finding") + ". Approve " + name + " with " + counted(len(v.Tools), "tool") + " all the same?"
	case v.Stage == gateway.StageApproved:
		return "Approve " + counted(waitingIn(v), "tool") + " of " + name + "?"
	}
	return "Approve " + name + " with " + counted(len(v.Tools), "tool") + "?"
}

// waitingIn is how many tools of a server wait.
func waitingIn(v gateway.ServerReview) int {
	n := 0
	for _, t := range v.Tools {
		if t.Reason != "" {
			n++
		}
	}
	return n
}

// findingsIn is how much the scanner has found in what waits. What it could
// not look at in full counts, too.
func findingsIn(v gateway.ServerReview) int {
	n := len(v.Findings)
	if n == 0 && v.Instructions != "" && v.Verdict != scan.Clean {
		n = 1
	}
	for _, t := range v.Tools {
		switch {
		case v.Stage == gateway.StageApproved && t.Reason == "":
		case len(t.Findings) == 0 && t.Verdict != scan.Clean:
			n++
		default:
			n += len(t.Findings)
		}
	}
	return n
}

// reviewStage is how far the review of a server is, in words.
func reviewStage(s gateway.ReviewStage) string {
	switch s {
	case "":
		return ""
	case gateway.StageLaunch:
		return "launch: it is neither started nor contacted before you approve how"
	case gateway.StageDefinitions:
		return "definitions: it runs for the review only"
	case gateway.StageApproved:
		return "approved"
	}
	return visibleLine(string(s))
}

// writeReview shows a server as it would be approved. Nothing in it can hide.
func (r *run) writeReview(w io.Writer, v gateway.ServerReview, full bool) {
	var f fields
	f.add("Server", visibleLine(v.Name))
	f.add("Review", reviewStage(v.Stage))
	if v.ProposedBy != "" {
		f.add("Proposed", strings.TrimSpace(r.moment(v.ProposedAt)+" by "+visibleLine(v.ProposedBy)))
	}
	if v.Launch.Command != "" {
		f.add("Command", quotedWords(append([]string{v.Launch.Command}, v.Launch.Args...)...))
	}
	f.add("Environment", environment(v))
	f.add("Directory", visibleLine(v.Launch.WorkingDir))
	f.add("URL", visibleLine(v.Launch.URL))
	f.add("Headers", visibleLine(strings.Join(v.Launch.Headers, ", ")))
	if v.LaunchApprovedBy != "" {
		f.add("Launch approved", strings.TrimSpace(r.moment(v.LaunchApprovedAt)+" by "+visibleLine(v.LaunchApprovedBy)))
	}
	if v.Stage != gateway.StageLaunch {
		f.add("State", visibleLine(v.State))
		f.add("Last error", visibleLine(v.LastError))
	}
	f.add("Fingerprint", visibleLine(v.Fingerprint))
	f.write(w)
	if v.Stage == gateway.StageLaunch {
		return
	}
	if v.Instructions != "" {
		fmt.Fprintf(w, "\nInstructions (scanner: %s)\n%s\n", r.verdict(v.Verdict, len(v.Findings)), indentBy("  ", visible(v.Instructions)))
	}
	r.writeFindings(w, "  ", v.Findings)
	r.writeReviewedTools(w, v, full)
}

// environment is the names of the variables; of those that are proposed the
// values, too, one a line.
func environment(v gateway.ServerReview) string {
	if len(v.ProposedEnv) == 0 {
		return visibleLine(strings.Join(v.Launch.Env, ", "))
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(v.ProposedEnv)) {
		lines = append(lines, quotedWord(name)+"="+quotedWord(v.ProposedEnv[name]))
	}
	return strings.Join(lines, "\n")
}

func (r *run) writeReviewedTools(w io.Writer, v gateway.ServerReview, full bool) {
	if len(v.Tools) == 0 {
		return
	}
	fmt.Fprintf(w, "\n%s\n", counted(len(v.Tools), "tool"))
	t := table{run: r, header: []string{"TOOL", "WAITS", "SCANNER", "DESCRIPTION"}}
	for _, one := range v.Tools {
		said, _ := strictjson.String(strictjson.Find(one.Definition, "description"))
		t.add(visibleLine(one.Tool), visibleLine(string(one.Reason)), r.verdict(one.Verdict, len(one.Findings)), cut(visibleLine(said), maxSummary))
	}
	t.write(w)
	if !full {
		r.note("The whole definitions: `mcpproxy upstream review %s --full`.", quotedWord(v.Name))
	}
	for _, one := range v.Tools {
		if len(one.Findings) == 0 && !full {
			continue
		}
		fmt.Fprintf(w, "\n%s\n", visibleLine(v.Name+":"+one.Tool))
		r.writeFindings(w, "  ", one.Findings)
		if full {
			r.writeDefinition(w, one.Definition)
		}
	}
}
