package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/redact"
)

func upstreamAdd(r *run) command {
	var s ops.AddServerRequest
	var env, headers []string
	return command{
		flags: map[string]any{
			"url": &s.URL, "env": &env, "header": &headers, "working-dir": &s.WorkingDir,
			"trust": &s.Trust, "quarantined": &s.Quarantined,
		},
		args: launchArguments,
		complete: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp // a new name
			}
			return nil, cobra.ShellCompDirectiveDefault // files, behind the command
		},
		run: r.withClient(func(ctx context.Context, c *api.Client, args []string) (err error) {
			s.Name = args[0]
			if len(args) > 1 {
				s.Command, s.Args = args[1], args[2:]
			}
			if s.Env, err = pairs("--env", env, "="); err != nil {
				return err
			}
			if s.Headers, err = pairs("--header", headers, ":"); err != nil {
				return err
			}
			return addServer(r, ctx, c, s)
		}),
	}
}

func addServer(r *run, ctx context.Context, c *api.Client, s ops.AddServerRequest) error {
	offline := false
	added, err := changeOrOffline(r, ctx, c, api.AddServer, s, func(f ops.OfflineAdmin, s ops.AddServerRequest) (ops.ServerView, error) {
		offline = true
		return f.AddServer(s)
	})
	if err != nil {
		return err
	}
	v := added
	if !offline {
		if v, err = awaitFirstTry(r, ctx, c, added); err != nil {
			return err
		}
		v.Warnings = added.Warnings
	}
	if err := r.print(v, func(p *printer) { writeAdded(p, v, offline) }); err != nil || offline || v.Quarantined {
		return err
	}
	return notReadyError(v, "did not come up", "It stays configured, and is tried again. See `mcpproxy upstream logs "+quotedWord(v.Name)+
		"`; change it with `mcpproxy upstream set`, or take it out with `mcpproxy upstream remove "+quotedWord(v.Name)+"`.")
}

// The poll interval and the timeout of waiting for an added server.
const (
	startCheckInterval = 100 * time.Millisecond
	startWaitTimeout   = time.Minute
)

// awaitFirstTry returns a server when its first start has ended: it is ready, has failed, or does not start by itself.
func awaitFirstTry(r *run, ctx context.Context, c *api.Client, v ops.ServerView) (ops.ServerView, error) {
	look, limit := time.NewTicker(startCheckInterval), time.NewTimer(startWaitTimeout)
	defer look.Stop()
	defer limit.Stop()
	for told := false; isStarting(v); {
		if v.Trouble != "" {
			return v, nil // that may last for minutes
		}
		if v.State == "connecting" && !told {
			told = true
			r.say("Waiting until %s is ready.", oneLine(v.Name))
		}
		select {
		case <-ctx.Done():
			return v, problem.Newf(problem.Interrupted, "Interrupted; server '%s' stays configured and goes on starting.", v.Name).
				WithHint("See `mcpproxy upstream get " + quotedWord(v.Name) + "`.")
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

// isStarting reports whether the first start of a server has not ended.
func isStarting(v ops.ServerView) bool {
	return v.Enabled && !v.Quarantined && (v.State == "stopped" || v.State == "connecting")
}

// launchArguments validates the arguments: a name and, after --, a command; or a name and --url.
func launchArguments(cmd *cobra.Command, args []string) error {
	url, dash := cmd.Flags().Changed("url"), cmd.ArgsLenAtDash()
	switch {
	case len(args) == 0 || dash == 0:
		return usage("Missing argument: name.", "Usage: `"+cmd.UseLine()+"`.")
	case dash < 0 && len(args) == 2 && strings.Contains(args[1], "://"):
		return usage("Unexpected argument '"+args[1]+"'.", "The address of a server goes behind --url: `mcpproxy upstream add "+quotedWord(args[0])+" --url "+quotedWord(args[1])+"`.")
	case dash > 1 || dash < 0 && len(args) > 1:
		return usage("Unexpected argument '"+args[1]+"'.", "Put the command and its arguments behind --, as in `mcpproxy upstream add "+quotedWord(args[0])+" -- npx -y PACKAGE`.")
	case url && len(args) > 1:
		return usage("A server has a URL or a command, not both.", "Usage: `"+cmd.UseLine()+"`.")
	case !url && len(args) == 1:
		return usage("How is the server reached? There is neither --url nor a command.", "Usage: `"+cmd.UseLine()+"`.")
	}
	return nil
}

// withDash returns the command line of `upstream add` with a missing -- added, "" where none is missing. It repeats no value that may be a secret.
func withDash(cmd *cobra.Command, args []string) string {
	at := slices.Index(args, "add")
	if cmd.CommandPath() != "mcpproxy upstream add" || at < 0 || slices.Contains(args, "--") || slices.ContainsFunc(args, isURL) {
		return ""
	}
	own, name, words := []string{}, "", args[at+1:]
	for i := 0; i < len(words); i++ {
		flag := ownFlag(cmd, words[i])
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
			shown := append([]string{"mcpproxy", "upstream", "add", quotedWord(name)}, own...)
			return strings.Join(append(shown, "--", quotedWords(launch...)), " ")
		}
	}
	return ""
}

func isURL(word string) bool { return strings.Contains(word, "://") }

// ownFlag returns the flag that a word is, nil if it is none.
func ownFlag(cmd *cobra.Command, word string) *pflag.Flag {
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

// pairs parses names with values. Errors repeat no value, because it may be a secret.
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

func writeAdded(p *printer, v ops.ServerView, offline bool) {
	switch {
	case offline:
		p.line("Added %s.", oneLine(v.Name))
	case v.State == "ready":
		p.line("Added %s: it is now %s, with %s", oneLine(v.Name), state(p, v), readyWith(v))
	case v.State == "connecting":
		p.line("Added %s: it is still %s.", oneLine(v.Name), state(p, v))
		p.note("See how it goes on with `mcpproxy upstream get %s`.", quotedWord(v.Name))
	default:
		p.line("Added %s: %s.", oneLine(v.Name), stateSentence(p, v))
	}
	writeWarnings(p, v)
	if v.Quarantined {
		p.note("It is not started before you have approved it: `mcpproxy upstream approve %s`.", quotedWord(v.Name))
	}
}

// readyWith describes the tools of a ready server, and how many wait.
func readyWith(v ops.ServerView) string {
	s := counted(v.ToolCount, "tool")
	if v.Tools == nil || v.Tools[policy.PendingApproval] == 0 {
		return s + "."
	}
	n := v.Tools[policy.PendingApproval]
	return s + ", " + strconv.Itoa(n) + map[bool]string{true: " waits", false: " wait"}[n == 1] + ": mcpproxy approvals"
}

func writeWarnings(p *printer, v ops.ServerView) {
	for _, warning := range v.Warnings {
		p.note("%s", oneLine(warning))
	}
}

func upstreamRemove(r *run) command {
	var given consent
	return command{flags: map[string]any{"yes": &given.yes}, run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
		offline := false
		s, err := changeOrOffline(r, ctx, c, api.GetServer, ops.ServerRef{Name: args[0]}, func(f ops.OfflineAdmin, in ops.ServerRef) (s ops.ServerDetail, err error) {
			offline = true
			s.ServerView, err = f.Server(in)
			return s, err
		})
		if err != nil {
			return err
		}
		question := "Remove " + visibleLine(s.Name) + " and forget its approvals?"
		if offline {
			question = "Remove " + visibleLine(s.Name) + " from the configuration file?"
		}
		if err := r.confirm(ctx, given, question, "Say `mcpproxy upstream remove "+quotedWord(s.Name)+" --yes`."); err != nil {
			return err
		}
		gone, err := changeOrOffline(r, ctx, c, api.RemoveServer, ops.ServerRef{Name: s.Name}, ops.OfflineAdmin.RemoveServer)
		if err != nil {
			return err
		}
		return r.print(gone, func(p *printer) {
			p.line("Removed %s.", oneLine(gone.Removed))
			if offline {
				p.note("MCPProxy is not running: what was approved of %s, and a login to it, are not forgotten, and count again for a server of this name.", oneLine(gone.Removed))
			}
		})
	})}
}

func writeDisabled(p *printer, v ops.ServerView) {
	p.line("%s is disabled.", oneLine(v.Name))
	writeWarnings(p, v)
}

func writeEnabled(p *printer, v ops.ServerView) {
	p.line("%s is enabled.", oneLine(v.Name))
	writeWarnings(p, v)
	if v.Quarantined {
		p.note("It is quarantined all the same: `mcpproxy upstream approve %s`.", quotedWord(v.Name))
	}
}

func writeQuarantined(p *printer, v ops.ServerView) {
	p.line("%s is quarantined.", oneLine(v.Name))
	p.note("Look at it again with `mcpproxy upstream approve %s`.", quotedWord(v.Name))
}

func upstreamReview(r *run) command {
	var full bool
	return command{
		flags: map[string]any{"full": &full}, complete: firstOnly(r.live(waitingServers)),
		run: runOperation(r, api.ReviewServer, serverNamed, func(p *printer, v ops.ServerReview) { writeReview(p, v, full) }),
	}
}

func upstreamApprove(r *run) command {
	var given consent
	var withFindings bool
	return command{
		flags:    map[string]any{"yes": &given.yes, "fingerprint": &given.fingerprint, "with-findings": &withFindings},
		complete: firstOnly(r.live(waitingServers)),
		run: r.withClient(func(ctx context.Context, c *api.Client, args []string) error {
			return approveServer(r, ctx, c, args[0], given, withFindings)
		}),
	}
}

func approveServer(r *run, ctx context.Context, c *api.Client, name string, given consent, withFindings bool) error {
	fingerprint := given.fingerprint
	if fingerprint == "" {
		v, err := awaitReview(r, ctx, c, name)
		if err != nil {
			return err
		}
		if r.output == formatTable {
			writeWaitingOf(r.printer(r.Stdout), v) // the user approves what is shown
			fmt.Fprintln(r.Stdout)
		}
		switch {
		case v.Stage == ops.StageApproved && countWaiting(reviewedDefinitions(v)) == 0:
			return r.print(v, func(p *printer) { p.line("Nothing of %s waits.", oneLine(v.Name)) })
		case v.Stage == ops.StageDefinitions && !v.Listed:
			return problem.Newf(problem.ServerUnavailable, "Server '%s' has not told its tools yet, so there is nothing to approve.", oneLine(v.Name)).
				WithHint("Wait until it is ready, or see `mcpproxy upstream logs " + quotedWord(v.Name) + "`.")
		case given.yes && !withFindings && v.Stage != ops.StageLaunch && findingsIn(v) > 0:
			return problem.Newf(problem.ToolLocked, "The scanner has found something in %s, so --yes is not enough.", oneLine(v.Name)).
				WithHint("Look with `mcpproxy upstream review " + quotedWord(v.Name) + "`, then add --with-findings, or --fingerprint " + visibleLine(v.Fingerprint) + ".")
		}
		if err := r.confirm(ctx, given, approvalQuestion(v), approveHint("upstream review", "upstream approve", quotedWord(v.Name), v.Fingerprint)); err != nil {
			return err
		}
		fingerprint = v.Fingerprint
	}
	v, err := api.ApproveServer.Call(ctx, c, ops.ServerDecision{ServerRef: ops.ServerRef{Name: name}, SeenFingerprint: ops.SeenFingerprint{Fingerprint: fingerprint}})
	if err != nil {
		return conflictHint(err, "approved", "mcpproxy upstream review "+quotedWord(name))
	}
	return r.print(v, func(p *printer) {
		switch {
		case v.Stage == ops.StageApproved && disabled(v):
			p.line("Approved %s.", oneLine(v.Name))
			p.note("It is disabled: `mcpproxy upstream enable %s`.", quotedWord(v.Name))
			return
		case v.Stage == ops.StageApproved:
			p.line("Approved %s: its tools can be called.", oneLine(v.Name))
			return
		}
		p.line("Approved how %s is launched: it runs for the review only.", oneLine(v.Name))
		p.note("Look at its tools and approve them: `mcpproxy upstream approve %s`.", quotedWord(v.Name))
	})
}

// The poll interval and the timeout of waiting for the tools of a server under review.
const (
	reviewPollInterval = 100 * time.Millisecond
	reviewWaitTimeout  = time.Minute
)

// awaitReview returns the review of a server. It waits for a server that is just starting, because without its tools there is nothing to approve.
func awaitReview(r *run, ctx context.Context, c *api.Client, name string) (ops.ServerReview, error) {
	v, err := api.ReviewServer.Call(ctx, c, ops.ServerRef{Name: name})
	if err != nil || !starting(v) {
		return v, err
	}
	if s, err := api.GetServer.Call(ctx, c, ops.ServerRef{Name: name}); err != nil || !s.Enabled {
		return v, err
	}
	r.printer(r.Stdout).note("Waiting until %s has told its tools.", oneLine(v.Name))
	look, limit := time.NewTicker(reviewPollInterval), time.NewTimer(reviewWaitTimeout)
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
		v, err = api.ReviewServer.Call(ctx, c, ops.ServerRef{Name: name})
	}
	return v, err
}

// starting reports whether a server's first start may still report its tools.
func starting(v ops.ServerReview) bool {
	return v.Stage == ops.StageDefinitions && !v.Listed && v.LastError == "" && slices.Contains([]string{"stopped", "connecting", "ready"}, v.State)
}

// disabled reports whether an approved server is disabled.
func disabled(v ops.ServerReview) bool {
	return slices.ContainsFunc(v.Tools, func(t ops.ReviewedTool) bool { return t.Status == policy.ServerDisabled.String() })
}

func approvalQuestion(v ops.ServerReview) string {
	name, offersWaiting := visibleLine(v.Name), countWaiting(v.Offers)
	what := func(tools, offers int) string {
		switch {
		case offers == 0:
			return counted(tools, "tool")
		case tools == 0:
			return counted(offers, "definition") + " beside its tools"
		}
		return counted(tools, "tool") + " and " + counted(offers, "other definition")
	}
	switch {
	case v.Stage == ops.StageLaunch:
		return "Start " + name + " like this, for the review only?"
	case findingsIn(v) > 0:
		return "The scanner has " + counted(findingsIn(v), "finding") + ". Approve " + name + " with " + what(len(v.Tools), len(v.Offers)) + " all the same?"
	case v.Stage == ops.StageApproved:
		return "Approve " + what(countWaiting(reviewedDefinitions(v))-offersWaiting, offersWaiting) + " of " + name + "?"
	}
	return "Approve " + name + " with " + what(len(v.Tools), len(v.Offers)) + "?"
}

// findingsIn counts the scanner's findings in what waits, including incomplete scans.
func findingsIn(v ops.ServerReview) int {
	n := 0
	for _, o := range reviewedDefinitions(v) {
		switch {
		case v.Stage == ops.StageApproved && o.Reason == "":
		case len(o.Findings) == 0 && o.Verdict != scan.Clean:
			n++
		default:
			n += len(o.Findings)
		}
	}
	return n
}

// writeReview shows a server as it would be approved, with hidden characters made visible.
func writeReview(p *printer, v ops.ServerReview, full bool) {
	var f fields
	f.add("Server", visibleLine(v.Name))
	f.add("Review", reviewStage(v.Stage))
	if v.ProposedBy != "" {
		f.add("Proposed", strings.TrimSpace(p.moment(v.ProposedAt)+" by "+visibleLine(v.ProposedBy)))
	}
	if v.Launch.Command != "" {
		f.add("Command", quotedWords(append([]string{v.Launch.Command}, v.Launch.Args...)...))
	}
	f.add("Environment", environment(v))
	f.add("Directory", visibleLine(v.Launch.WorkingDir))
	f.add("URL", visibleLine(v.Launch.URL))
	f.add("Headers", visibleLine(strings.Join(v.Launch.Headers, ", ")))
	if v.LaunchApprovedBy != "" {
		f.add("Launch approved", strings.TrimSpace(p.moment(v.LaunchApprovedAt)+" by "+visibleLine(v.LaunchApprovedBy)))
	}
	if v.Stage != ops.StageLaunch {
		f.add("State", visibleLine(v.State))
		f.add("Last error", visibleLine(v.LastError))
	}
	f.add("Notice", visibleLine(v.Notice))
	f.add("Fingerprint", visibleLine(v.Fingerprint))
	f.write(p)
	if v.Stage == ops.StageLaunch {
		return
	}
	if v.Instructions != "" {
		p.line("\nInstructions (scanner: %s%s)", verdict(p, v.Verdict, len(v.Findings)), instructionsWait(v))
		p.text("  ", visible(v.Instructions))
	}
	writeFindings(p, "  ", v.Findings)
	writeReviewed(p, v, full)
}

// writeWaitingOf writes a review with what waits in full; what is approved is only counted.
func writeWaitingOf(p *printer, v ops.ServerReview) {
	all := reviewedDefinitions(v)
	n := countWaiting(all)
	if n == 0 || v.Stage == ops.StageLaunch {
		writeReview(p, v, false)
		return
	}
	if instructionsWait(v) == "" {
		v.Instructions, v.Findings = "", nil
	}
	hidden := len(v.Offers)
	v.Tools = slices.DeleteFunc(slices.Clone(v.Tools), func(t ops.ReviewedTool) bool { return t.Reason == "" })
	v.Offers = slices.DeleteFunc(slices.Clone(v.Offers), func(o ops.ReviewedOffer) bool { return o.Reason == "" })
	v.TotalOffers -= hidden - len(v.Offers)
	writeReview(p, v, true)
	if left := len(all) - n; left > 0 {
		p.line("\n%s approved already and not shown: `mcpproxy upstream review %s --full` shows all.", counted(left, "definition"), quotedWord(v.Name))
	}
}

// environment returns the names of the variables; for a proposal also the values, one per line.
func environment(v ops.ServerReview) string {
	if len(v.ProposedEnv) == 0 {
		return visibleLine(strings.Join(v.Launch.Env, ", "))
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(v.ProposedEnv)) {
		lines = append(lines, quotedWord(name)+"="+quotedWord(v.ProposedEnv[name]))
	}
	return strings.Join(lines, "\n")
}
