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

func newUpstreamAddCommand(r *invocation) commandSpec {
	var s ops.AddServerRequest
	var env, headers []string
	return commandSpec{
		flags: map[string]any{
			"url": &s.URL, "env": &env, "header": &headers, "working-dir": &s.WorkingDir,
			"trust": &s.Trust, "quarantined": &s.Quarantined,
		},
		args: checkAddServerArguments,
		complete: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp // no completion for a new name
			}
			return nil, cobra.ShellCompDirectiveDefault // completes file names after the command
		},
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) (err error) {
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
	return s + ", " + strconv.Itoa(n) + map[bool]string{true: " waits", false: " wait"}[n == 1] + ": mcpproxy approvals"
}

func noteServerWarnings(p *printer, v ops.ServerView) {
	for _, warning := range v.Warnings {
		p.addNote("%s", toOneLine(warning))
	}
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

func newUpstreamReviewCommand(r *invocation) commandSpec {
	var full bool
	return commandSpec{
		flags: map[string]any{"full": &full}, complete: completeFirstArgument(r.completeFromDaemon(waitingServerNames)),
		run: operationRunFunc(r, api.ReviewServer, parseServerRef, func(p *printer, v ops.ServerReview) { writeServerReview(p, v, full) }),
	}
}

func newUpstreamApproveCommand(r *invocation) commandSpec {
	var given confirmationFlags
	var withFindings bool
	return commandSpec{
		flags:    map[string]any{"yes": &given.yes, "fingerprint": &given.fingerprint, "with-findings": &withFindings},
		complete: completeFirstArgument(r.completeFromDaemon(waitingServerNames)),
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
			return confirmAndApproveServer(r, ctx, c, args[0], given, withFindings)
		}),
	}
}

func confirmAndApproveServer(r *invocation, ctx context.Context, c *api.Client, name string, given confirmationFlags, withFindings bool) error {
	fingerprint := given.fingerprint
	if fingerprint == "" {
		v, err := awaitServerReview(r, ctx, c, name)
		if err != nil {
			return err
		}
		if r.output == formatTable {
			writeWaitingPartOfReview(r.newPrinter(r.Stdout), v) // show the definitions that the user approves
			fmt.Fprintln(r.Stdout)
		}
		switch {
		case v.Stage == ops.StageApproved && countWaitingDefinitions(toReviewedDefinitions(v)) == 0:
			return r.printOutput(v, func(p *printer) { p.writeLine("Nothing of %s awaits approval.", toOneLine(v.Name)) })
		case v.Stage == ops.StageDefinitions && !v.Listed:
			return problem.Newf(problem.ServerUnavailable, "Server '%s' has not listed its tools yet, so there is nothing to approve.", toOneLine(v.Name)).
				WithHint("Wait until it is ready, or see `mcpproxy upstream logs " + shellQuoteWord(v.Name) + "`.")
		case given.yes && !withFindings && v.Stage != ops.StageLaunch && countReviewFindings(v) > 0:
			return problem.Newf(problem.ToolLocked, "The scanner reports findings in %s, so --yes is not enough.", toOneLine(v.Name)).
				WithHint("Review with `mcpproxy upstream review " + shellQuoteWord(v.Name) + "`, then add --with-findings, or --fingerprint " + escapeInvisibleLine(v.Fingerprint) + ".")
		}
		if err := r.requireConfirmation(ctx, given, serverApprovalQuestion(v), approveWithoutTerminalHint("upstream review", "upstream approve", shellQuoteWord(v.Name), v.Fingerprint)); err != nil {
			return err
		}
		fingerprint = v.Fingerprint
	}
	v, err := api.ApproveServer.Call(ctx, c, ops.ServerDecision{ServerRef: ops.ServerRef{Name: name}, SeenFingerprint: ops.SeenFingerprint{Fingerprint: fingerprint}})
	if err != nil {
		return withConflictHint(err, "approved", "mcpproxy upstream review "+shellQuoteWord(name))
	}
	return r.printOutput(v, func(p *printer) {
		switch {
		case v.Stage == ops.StageApproved && isServerDisabled(v):
			p.writeLine("Approved %s.", toOneLine(v.Name))
			p.addNote("It is disabled. To enable it, run `mcpproxy upstream enable %s`.", shellQuoteWord(v.Name))
			return
		case v.Stage == ops.StageApproved:
			p.writeLine("Approved %s: its tools can be called.", toOneLine(v.Name))
			return
		}
		p.writeLine("Approved the launch of %s. It runs only for the review.", toOneLine(v.Name))
		if v.Launch.Pin != "" {
			p.writeWrapped("", "It starts exactly "+toOneLine(v.Launch.Pin)+".")
		}
		p.addNote("To review and approve its tools, run `mcpproxy upstream approve %s`.", shellQuoteWord(v.Name))
	})
}

// The poll interval and the timeout of waiting for the tools of a server under review.
const (
	reviewPollInterval = 100 * time.Millisecond
	reviewWaitTimeout  = time.Minute
)

// awaitServerReview returns the review of a server. It waits for a server that is starting, because there is nothing to
// approve before the server lists its tools.
func awaitServerReview(r *invocation, ctx context.Context, c *api.Client, name string) (ops.ServerReview, error) {
	v, err := api.ReviewServer.Call(ctx, c, ops.ServerRef{Name: name})
	if err != nil || !mayStillReportTools(v) {
		return v, err
	}
	if s, err := api.GetServer.Call(ctx, c, ops.ServerRef{Name: name}); err != nil || !s.Enabled {
		return v, err
	}
	r.newPrinter(r.Stdout).addNote("Waiting until %s lists its tools.", toOneLine(v.Name))
	look, limit := time.NewTicker(reviewPollInterval), time.NewTimer(reviewWaitTimeout)
	defer look.Stop()
	defer limit.Stop()
	for err == nil && mayStillReportTools(v) {
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

// mayStillReportTools reports whether a server under review is still starting, so that it may report its tools.
func mayStillReportTools(v ops.ServerReview) bool {
	return v.Stage == ops.StageDefinitions && !v.Listed && v.LastError == "" && slices.Contains([]string{"stopped", "connecting", "ready"}, v.State)
}

// isServerDisabled reports whether a server is approved but disabled.
func isServerDisabled(v ops.ServerReview) bool {
	return slices.ContainsFunc(v.Tools, func(t ops.ReviewedTool) bool { return t.Status == policy.ServerDisabled.String() })
}

func serverApprovalQuestion(v ops.ServerReview) string {
	name, offersWaiting := escapeInvisibleLine(v.Name), countWaitingDefinitions(v.Offers)
	what := func(tools, offers int) string {
		switch {
		case offers == 0:
			return countWithNoun(tools, "tool")
		case tools == 0:
			return countWithNoun(offers, "other definition")
		}
		return countWithNoun(tools, "tool") + " and " + countWithNoun(offers, "other definition")
	}
	if v.Stage == ops.StageLaunch {
		return "Start " + name + " with this launch, only for the review?"
	}
	question := "Approve " + name + " with " + what(len(v.Tools), len(v.Offers))
	if v.Stage == ops.StageApproved { // the others are approved already
		question = "Approve " + what(countWaitingDefinitions(toReviewedDefinitions(v))-offersWaiting, offersWaiting) + " of " + name
	}
	if found := countReviewFindings(v); found > 0 {
		return "The scanner has " + countWithNoun(found, "finding") + ". " + question + " anyway?"
	}
	return question + "?"
}

// countReviewFindings counts the scanner's findings in the definitions that wait for approval. An incomplete scan
// counts as a finding.
func countReviewFindings(v ops.ServerReview) int {
	n := 0
	for _, o := range toReviewedDefinitions(v) {
		switch {
		case v.Stage == ops.StageApproved && !isApprovedWithServer(o):
		case len(o.Findings) == 0 && o.Verdict != scan.Clean:
			n++
		default:
			n += len(o.Findings)
		}
	}
	return n
}

// writeServerReview shows the server and the definitions that an approval would cover. It makes hidden characters
// visible.
func writeServerReview(p *printer, v ops.ServerReview, full bool) {
	var f fieldList
	f.add("Server", escapeInvisibleLine(v.Name))
	f.add("Review", reviewStageText(v.Stage))
	if v.ProposedBy != "" {
		f.add("Proposed", strings.TrimSpace(p.formatTime(v.ProposedAt)+" by "+escapeInvisibleLine(v.ProposedBy)))
	}
	if v.Launch.Command != "" {
		f.add("Command", shellQuoteWords(append([]string{v.Launch.Command}, v.Launch.Args...)...))
		f.add("Pinned", toOneLine(v.Launch.Pin))
	}
	f.add("Environment", formatEnvironment(v))
	f.add("Directory", escapeInvisibleLine(v.Launch.WorkingDir))
	f.add("URL", escapeInvisibleLine(v.Launch.URL))
	f.add("Headers", escapeInvisibleLine(strings.Join(v.Launch.Headers, ", ")))
	if v.LaunchApprovedBy != "" {
		f.add("Launch approved", strings.TrimSpace(p.formatTime(v.LaunchApprovedAt)+" by "+escapeInvisibleLine(v.LaunchApprovedBy)))
	}
	if v.Stage != ops.StageLaunch {
		f.add("State", escapeInvisibleLine(v.State))
		f.add("Last error", escapeInvisibleLine(v.LastError))
	}
	f.add("Notice", escapeInvisibleLine(v.Notice))
	f.add("Fingerprint", escapeInvisibleLine(v.Fingerprint))
	f.write(p)
	if v.Stage == ops.StageLaunch {
		return
	}
	if v.Instructions != "" {
		p.writeLine("\nInstructions (scanner: %s%s)", formatScanVerdict(p, v.Verdict, len(v.Findings)), instructionsWaitText(v))
		p.writeWrapped("  ", escapeInvisible(v.Instructions))
	}
	writeScanFindings(p, "  ", v.Findings)
	writeReviewedDefinitions(p, v, full)
}

// writeWaitingPartOfReview writes new definitions in full and the changes of changed definitions. It only counts
// approved definitions.
func writeWaitingPartOfReview(p *printer, v ops.ServerReview) {
	all := toReviewedDefinitions(v)
	if countWaitingDefinitions(all) == 0 || v.Stage == ops.StageLaunch {
		writeServerReview(p, v, false)
		return
	}
	if instructionsWaitText(v) == "" || slices.ContainsFunc(v.Offers, func(o ops.ReviewedOffer) bool { return len(o.Changes) > 0 && isInstructionsShownAtTop(v, o) }) {
		v.Instructions, v.Findings = "", nil
	}
	hidden := len(v.Offers)
	v.Tools = slices.DeleteFunc(slices.Clone(v.Tools), func(t ops.ReviewedTool) bool { return t.Reason == "" })
	v.Offers = slices.DeleteFunc(slices.Clone(v.Offers), func(o ops.ReviewedOffer) bool { return o.Reason == "" })
	v.TotalOffers -= hidden - len(v.Offers)
	writeServerReview(p, v, true)
	if left := len(all) - len(v.Tools) - len(v.Offers); left > 0 {
		p.writeLine("\nNot shown: %s (approved already). To see all, run `mcpproxy upstream review %s --full`.", countWithNoun(left, "definition"), shellQuoteWord(v.Name))
	}
}

// formatEnvironment returns the names of the variables, one per line. For a proposal, it also returns the values.
func formatEnvironment(v ops.ServerReview) string {
	if len(v.ProposedEnv) == 0 {
		return escapeInvisibleLine(strings.Join(v.Launch.Env, ", "))
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(v.ProposedEnv)) {
		lines = append(lines, shellQuoteWord(name)+"="+shellQuoteWord(v.ProposedEnv[name]))
	}
	return strings.Join(lines, "\n")
}
