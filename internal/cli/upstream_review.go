package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

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
		} else if v.Notice != "" {
			p.writeWrapped("", toOneLine(v.Notice))
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
		f.add("Sandbox", escapeInvisibleLine(cmp.Or(v.Launch.Sandbox, "none: the command has all your rights")))
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
	return strings.Join(mapSlice(slices.Sorted(maps.Keys(v.ProposedEnv)), func(name string) string {
		return shellQuoteWord(name) + "=" + shellQuoteWord(v.ProposedEnv[name])
	}), "\n")
}

// toReviewedDefinitions converts the review of a server to a list of its definitions, tools first.
func toReviewedDefinitions(v ops.ServerReview) []ops.ReviewedOffer {
	return append(mapSlice(v.Tools, func(t ops.ReviewedTool) ops.ReviewedOffer {
		return ops.ReviewedOffer{Kind: tool.KindTool, Name: t.Tool, ApprovalStatus: t.ApprovalStatus, Definition: t.Definition, Changes: t.Changes, ScanResult: t.ScanResult}
	}), v.Offers...)
}

// writeReviewedDefinitions shows the definitions of a server that an approval would cover.
func writeReviewedDefinitions(p *printer, v ops.ServerReview, full bool) {
	all := toReviewedDefinitions(v)
	tools, offers := all[:len(v.Tools)], all[len(v.Tools):]
	writeReviewedKindTable(p, tools, tool.KindTool)
	if len(tools) > 0 && !full {
		p.addNote("To see the full definitions, run `mcpproxy upstream review %s --full`.", shellQuoteWord(v.Name))
	}
	for _, o := range tools {
		writeReviewedDefinition(p, v, o, full)
	}
	for _, kind := range []tool.DefinitionKind{tool.KindPrompt, tool.KindResource, tool.KindTemplate} {
		writeReviewedKindTable(p, offers, kind)
	}
	if more := v.TotalOffers - len(v.Offers); more > 0 {
		p.addNote("Not shown here, and not approved by this command: %s.", countWithNoun(more, "more definition"))
	}
	for _, o := range offers {
		writeReviewedDefinition(p, v, o, full)
	}
}

// writeReviewedKindTable writes the table of the definitions of one kind.
func writeReviewedKindTable(p *printer, all []ops.ReviewedOffer, kind tool.DefinitionKind) {
	name := strings.ToUpper(kind.Label())
	t := table{p: p, header: []string{name, "REASON", "SCANNER", "DESCRIPTION"}, narrowingSteps: slices.Concat(
		columnTruncationStep("DESCRIPTION", 20), columnHidingSteps("DESCRIPTION"), columnTruncationStep(name, 24), columnTruncationStep("SCANNER", 9), columnHidingSteps("REASON"), columnTruncationStep(name, 8))}
	for _, o := range all {
		if o.Kind == kind {
			said, _ := wirejson.String(wirejson.Find(o.Definition, "description"))
			t.addRow(escapeInvisibleLine(o.Name), escapeInvisibleLine(string(o.Reason)), formatScanVerdict(p, o.Verdict, len(o.Findings)), escapeInvisibleLine(said))
		}
	}
	if len(t.rows) > 0 {
		fmt.Fprintf(p, "\n%s\n", countWithNoun(len(t.rows), kind.Label()))
		t.write()
	}
}

// writeReviewedDefinition writes the findings, changes and definition of one definition.
func writeReviewedDefinition(p *printer, v ops.ServerReview, o ops.ReviewedOffer, full bool) {
	above := isInstructionsShownAtTop(v, o)
	if (len(o.Findings) == 0 && !full || above) && len(o.Changes) == 0 && (above || o.Kind != tool.KindInstructions) {
		return
	}
	fmt.Fprintf(p, "\n%s\n", definitionRef{v.Name, o.Kind, o.Name}.capitalizedName())
	if !above {
		writeScanFindings(p, "  ", o.Findings)
	}
	switch {
	case len(o.Changes) > 0:
		writeDefinitionChanges(p, o.Changes)
	case full || o.Kind == tool.KindInstructions:
		writeWholeDefinition(p, o.Definition)
	}
}

// isInstructionsShownAtTop reports whether a definition is the server's instructions, which are shown at the top of the
// review.
func isInstructionsShownAtTop(v ops.ServerReview, o ops.ReviewedOffer) bool {
	said, _ := wirejson.String(o.Definition)
	return o.Kind == tool.KindInstructions && said == v.Instructions
}

// instructionsWaitText explains why the instructions of a server wait for approval. It returns "" if they do not wait.
func instructionsWaitText(v ops.ServerReview) string {
	for _, o := range v.Offers {
		if o.Reason != "" && isInstructionsShownAtTop(v, o) {
			return ", " + waitReasonText(o.Reason)
		}
	}
	return ""
}

// isApprovedWithServer reports whether an approval of the server approves a definition that waits. A blocked one stays blocked.
func isApprovedWithServer(o ops.ReviewedOffer) bool {
	return o.Reason != "" && o.Reason != approval.Blocked
}

// countWaitingDefinitions counts the definitions that an approval of the server approves.
func countWaitingDefinitions(all []ops.ReviewedOffer) int {
	n := 0
	for _, o := range all {
		if isApprovedWithServer(o) {
			n++
		}
	}
	return n
}

// waitingPrimitivesText returns the note in the server list about waiting prompts, resources and instructions.
func waitingPrimitivesText(s ops.ServerView) string {
	if s.Offers == nil {
		return ""
	}
	n := 0
	for _, c := range []*ops.OfferCount{s.Offers.Instructions, s.Offers.Prompts, s.Offers.Resources, s.Offers.Templates} {
		if c != nil {
			n += c.Waiting
		}
	}
	if n == 0 {
		return ""
	}
	what := "1 prompt, resource or instruction awaits"
	if n > 1 {
		what = fmt.Sprintf("%d prompts, resources or instructions await", n)
	}
	if s.Offers.Instructions != nil && n == s.Offers.Instructions.Waiting { // as in the list of pending approvals
		return "its instructions await approval: mcpproxy tools approve " + definitionRef{Server: s.Name, Kind: tool.KindInstructions}.shellArguments()
	}
	return what + " approval: mcpproxy upstream approve " + shellQuoteWord(s.Name)
}

// addPrimitiveCounts adds the counts of a server's prompts, resources, templates and instructions.
func addPrimitiveCounts(f *fieldList, c *ops.OfferCounts) {
	if c == nil {
		return
	}
	for _, one := range []struct {
		title string
		count *ops.OfferCount
	}{{"Instructions", c.Instructions}, {"Prompts", c.Prompts}, {"Resources", c.Resources}, {"Templates", c.Templates}} {
		switch n := one.count; {
		case n == nil:
		case one.title == "Instructions" && n.Waiting > 0:
			f.add(one.title, "wait for you")
		case one.title == "Instructions" && n.Blocked > 0:
			f.add(one.title, "blocked by a user")
		case one.title == "Instructions":
			f.add(one.title, "approved")
		default:
			text := fmt.Sprint(n.Total)
			if n.Waiting > 0 {
				text += fmt.Sprintf(", %d of them wait for you", n.Waiting)
			}
			if n.Blocked > 0 {
				text += fmt.Sprintf(", %d of them blocked by a user", n.Blocked)
			}
			f.add(one.title, text)
		}
	}
}
