package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"mcpproxy/internal/api"
	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// howToDecideHint replaces the column of commands if the terminal is too narrow for it.
const howToDecideHint = "Review and approve: `mcpproxy upstream approve NAME` for a server, `mcpproxy tools approve NAME` for a tool, with --kind KIND for the rest."

// newApprovalsCommand returns `approvals` and `approvals list`.
func newApprovalsCommand(r *invocation) commandSpec {
	return commandSpec{list: true, run: operationRunFunc(r, api.ListApprovals, zeroInput, writeWaitingApprovals), args: func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 && cmd.HasSubCommands() {
			return unknownCommandError(cmd, args[0])
		}
		return checkMaxArguments(cmd, args, 0)
	}}
}

// waitingRow is a row of the list of pending approvals.
type waitingRow struct {
	name, reason string
	findings     int
	proposed     *time.Time
	command      string // the command that reviews and approves it
}

// toWaitingRows lists servers first. If the approvals of a server were lost, its definitions have no rows, because they
// are approved with the server.
func toWaitingRows(waiting ops.Waiting) (rows []waitingRow) {
	for _, s := range waiting.Servers {
		rows = append(rows, waitingRow{s.Name, "server: " + string(s.Stage), s.Findings, s.ProposedAt, "mcpproxy upstream approve " + shellQuoteWord(s.Name)})
	}
	forgotten := map[string]int{}
	for _, s := range waiting.Forgotten {
		forgotten[s.Name] = len(rows)
		rows = append(rows, waitingRow{s.Name, "server: approvals lost", 0, nil, "mcpproxy upstream approve " + shellQuoteWord(s.Name)})
	}
	for _, w := range toWaitingDefinitions(waiting) {
		if i, ok := forgotten[w.definition.Server]; ok {
			rows[i].findings += len(w.Findings)
			continue
		}
		rows = append(rows, waitingRow{w.definition.qualifiedName(), w.definition.Kind.Label() + ": " + string(w.Reason), len(w.Findings), nil, "mcpproxy tools approve " + w.definition.shellArguments()})
	}
	return rows
}

func writeWaitingApprovals(p *printer, waiting ops.Waiting) {
	list[waitingRow]{
		none: "Nothing awaits approval.",
		columns: []column[waitingRow]{
			{title: "ITEM", text: func(w waitingRow) string { return w.name }},
			{title: "REASON", text: func(w waitingRow) string { return w.reason }},
			{title: "FINDINGS", right: true, text: func(w waitingRow) string { return formatFindingCount(w.findings) }},
			{title: "AGE", cell: func(p *printer, w waitingRow) string { return p.formatAge(w.proposed) }},
			{title: "REVIEW AND APPROVE", cell: func(_ *printer, w waitingRow) string { return w.command }},
		},
		narrow: slices.Concat(columnHidingSteps("AGE"), addNoteToSteps(howToDecideHint, columnHidingSteps("REVIEW AND APPROVE")), columnTruncationStep("ITEM", 24), columnTruncationStep("REASON", 10), columnHidingSteps("FINDINGS"), columnTruncationStep("ITEM", 8)),
		exact:  true,
	}.write(p, toWaitingRows(waiting))
	p.addNotes(mapSlice(waiting.Warnings, toOneLine))
	noteUnlistedDefinitions(p, tool.KindTool, waiting)
	noteUnlistedDefinitions(p, tool.KindPrompt, waiting)
}

// waitingServerNames returns the names of servers that wait for approval, for completion. If there are none, it returns
// the names of all servers.
func waitingServerNames(ctx context.Context, c *api.Client, typed string) []string {
	waiting, _ := api.ListApprovals.Call(ctx, c, ops.PendingApprovalsQuery{})
	if len(waiting.Servers) == 0 {
		return serverNames(ctx, c, typed)
	}
	return mapSlice(waiting.Servers, func(s ops.WaitingServer) string { return s.Name })
}

// approveFlags are the flags of `tools approve`.
type approveFlags struct {
	confirmationFlags
	server       string
	all          bool
	withFindings bool
}

// parseApprovalTarget returns the server of a batch approval, or the definition of a single approval.
func (f approveFlags) parseApprovalTarget(kind tool.DefinitionKind, args []string) (server string, one definitionRef, err error) {
	ofTools, word := kind == tool.KindTool, kind.Label()
	both, either := f.all && f.server != "", f.all || f.server != ""
	switch {
	case ofTools && either && !both:
		err = newUsageError("--server and --all must be used together.", "Run `mcpproxy tools approve --server NAME --all`.")
	case ofTools && both && len(args) > 0:
		err = newUsageError("Give either a tool, or --server and --all.", "")
	case either && (!both || len(args) > 0):
		err = newUsageError("--server and --all must be used together, without a name.", "Run `mcpproxy tools approve --kind "+word+" --server NAME --all`.")
	case both:
		server = f.server
	case len(args) == 0:
		missing := "server:" + word
		if kind == tool.KindInstructions {
			missing = "server" // they have no name
		}
		err = newUsageError("Missing argument: "+missing+".", "See the pending approvals with `mcpproxy approvals`.")
	default:
		one, err = parseDefinitionRef(kind, args[0])
		if one.Name == "*" && f.fingerprint == "" { // with a fingerprint, * is the name of a definition
			server = one.Server
		}
	}
	switch {
	case err != nil:
	case server == "" && f.withFindings:
		many := "many"
		if ofTools {
			many = "many tools"
		}
		err = newUsageError("--with-findings is for "+many+" at once.", "A single "+word+" is shown with its findings. Approve it by name.")
	case ofTools && server != "" && f.fingerprint != "":
		err = newUsageError("--fingerprint is for a single tool.", "")
	}
	return server, one, err
}

// batchApprovalResult is the result of approving several definitions.
type batchApprovalResult struct {
	Approved []string        `json:"approved"`
	Skipped  []any           `json:"skipped"`
	Failed   []itemWithError `json:"failed"`
}

// itemWithError is the name of a definition or client that could not be changed, with the error.
type itemWithError struct {
	Name  string           `json:"name"`
	Error *problem.Problem `json:"error"`
}

// waitingDefinition is a definition that waits for approval.
type waitingDefinition struct {
	definition      definitionRef
	ops.WaitingTool     // common fields of tools and other definitions
	listed          any // the daemon's answer, for -o json
}

// isSuspicious reports whether the definition needs a separate review.
func (w waitingDefinition) isSuspicious() bool { return w.Verdict != scan.Clean || len(w.Findings) > 0 }

// toWaitingDefinitions returns the definitions that wait for approval, tools first.
func toWaitingDefinitions(all ops.Waiting) []waitingDefinition {
	var out []waitingDefinition
	for _, t := range all.Tools {
		out = append(out, waitingDefinition{definitionRef{t.Server, tool.KindTool, t.Tool}, t, t})
	}
	for _, o := range all.Offers {
		out = append(out, waitingDefinition{definitionRef{o.Server, o.Kind, o.Name}, ops.WaitingTool{Name: o.Name, PendingInfo: o.PendingInfo, ScanResult: o.ScanResult}, o})
	}
	return out
}

// approveDefinitions approves definitions. It sends the definitions that may be approved together in one request, so
// that the user confirms them once.
func (b *batchApprovalResult) approveDefinitions(ctx context.Context, c *api.Client, all []waitingDefinition) {
	done := func(w waitingDefinition, err error) {
		if err != nil {
			b.Failed = append(b.Failed, itemWithError{w.Name, problem.From(err)})
		} else {
			b.Approved = append(b.Approved, w.Name)
		}
	}
	var alone, together []waitingDefinition
	for _, w := range all {
		if w.Together {
			together = append(together, w)
		} else {
			alone = append(alone, w)
		}
	}
	for part := range slices.Chunk(together, ops.MaxBatch) {
		out, err := api.ApproveTools.Call(ctx, c, ops.ToolsApproval{Tools: mapSlice(part, func(w waitingDefinition) ops.NamedDefinition {
			return ops.NamedDefinition{Name: w.definition.qualifiedName(), Kind: w.definition.Kind, Fingerprint: w.Fingerprint}
		})})
		for i, w := range part {
			if err == nil {
				done(w, out.Results[i].RefusalError())
			} else {
				done(w, err)
			}
		}
	}
	for _, w := range alone {
		_, _, err := w.definition.approve(ctx, c, ops.SeenFingerprint{Fingerprint: w.Fingerprint})
		done(w, err)
	}
}

// approveCleanDefinitions approves the clean waiting definitions of a server in the version that was listed. After a
// failure, it continues with the others.
func approveCleanDefinitions(r *invocation, ctx context.Context, c *api.Client, kind tool.DefinitionKind, server string, f approveFlags) error {
	if _, err := api.GetServer.Call(ctx, c, ops.ServerRef{Name: server}); err != nil {
		return err
	}
	waiting, err := api.ListApprovals.Call(ctx, c, ops.PendingApprovalsQuery{})
	if err != nil {
		return err
	}
	if kind == tool.KindTool && slices.ContainsFunc(waiting.Servers, func(s ops.WaitingServer) bool { return s.Name == server }) {
		return problem.Newf(problem.ToolLocked, "Server '%s' is quarantined. Approving the server approves its tools.", toPrintable(server)).
			WithHint("Review it with `mcpproxy upstream approve " + shellQuoteWord(server) + "`.")
	}
	done := batchApprovalResult{Approved: []string{}, Skipped: []any{}, Failed: []itemWithError{}}
	var wanted, skipped []waitingDefinition
	for _, w := range toWaitingDefinitions(waiting) {
		if w.definition.Server != server || w.definition.Kind != kind {
			continue
		}
		if w.Reason == approval.Blocked || !f.withFindings && w.isSuspicious() {
			skipped, done.Skipped = append(skipped, w), append(done.Skipped, w.listed)
		} else {
			wanted = append(wanted, w)
		}
	}
	p := r.newPrinter(r.Stdout)
	if r.output == formatTable {
		writeDefinitionTable(p, kind, "To be approved:", wanted)
		writeDefinitionTable(p, kind, "Not included. Approve these one by one:", skipped)
	}
	if kind == tool.KindTool && len(wanted)+len(skipped) == 0 {
		p.addNote("No tool of this server waits for approval.")
	}
	noteUnlistedDefinitions(p, kind, waiting)
	if len(wanted) > 0 {
		if err := r.requireConfirmation(ctx, f.confirmationFlags, "Approve "+countWithNoun(len(wanted), kind.Label())+" of "+escapeInvisibleLine(server)+"?",
			"Review with `mcpproxy approvals`, then approve them one by one, or all with --yes."); err != nil {
			return err
		}
	}
	done.approveDefinitions(ctx, c, wanted)
	err = r.printOutput(done, func(p *printer) {
		if len(done.Approved) > 0 || kind != tool.KindTool {
			p.writeLine("Approved %s.", countWithNoun(len(done.Approved), kind.Label()))
		}
		for _, one := range done.Failed {
			p.addNote("Not approved: %s: %s", escapeInvisibleLine(one.Name), toPrintable(one.Error.Message))
		}
	})
	if err != nil || len(done.Failed) == 0 {
		return err
	}
	return problem.Newf(done.Failed[0].Error.Code, "%s could not be approved.", countWithNoun(len(done.Failed), kind.Label())).
		WithHint("See the pending approvals with `mcpproxy approvals`.")
}

func writeDefinitionTable(p *printer, kind tool.DefinitionKind, title string, all []waitingDefinition) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(p, title)
	t := &table{p: p, header: []string{"NAME", "REASON", "SCANNER", "REVIEW"}, narrowingSteps: slices.Concat(
		addNoteToSteps("To review one, run `mcpproxy tools diff NAME`. For other kinds, add --kind KIND.", columnHidingSteps("REVIEW")),
		columnTruncationStep("NAME", 24), columnTruncationStep("TOOL", 24), columnTruncationStep("RELAXED", 8), columnTruncationStep("SCANNER", 9), columnHidingSteps("REASON"), columnTruncationStep("NAME", 8), columnTruncationStep("TOOL", 8))}
	if kind == tool.KindTool {
		t.header = []string{"TOOL", "REASON", "SCANNER", "RELAXED", "REVIEW"}
	}
	for _, w := range all {
		cells := []string{escapeInvisibleLine(w.Name), escapeInvisibleLine(string(w.Reason)), formatScanVerdict(p, w.Verdict, len(w.Findings)), strings.Join(w.Loosened, ", "), "mcpproxy tools diff " + w.definition.shellArguments()}
		if kind != tool.KindTool {
			cells = slices.Delete(cells, 3, 4)
		}
		t.addRow(cells...)
	}
	t.write()
	fmt.Fprintln(p)
}

// noteUnlistedDefinitions adds a note with the number of waiting definitions that the daemon did not list. It counts
// either tools or all other kinds.
func noteUnlistedDefinitions(p *printer, kind tool.DefinitionKind, waiting ops.Waiting) {
	more, noun := waiting.TotalTools-len(waiting.Tools), "more tool"
	if kind != tool.KindTool {
		more, noun = waiting.TotalOffers-len(waiting.Offers), "other definition"
	}
	if more > 0 {
		p.addNote("Not shown: %s. Decide on these first.", countWithNoun(more, noun))
	}
}

// addApprovalFields adds the fields about the approval of a tool and about disabling it.
func addApprovalFields(p *printer, f *fieldList, t *ops.Trust) {
	if t == nil {
		return
	}
	f.add("Reason", waitReasonText(t.Reason))
	if t.Approved != "" {
		f.add("Approved", strings.TrimSpace(p.formatTime(t.ApprovedAt)+" by "+toOneLine(t.ApprovedBy)))
	}
	if t.OffBy != "" {
		f.add("Disabled", strings.TrimSpace(p.formatTime(t.OffAt)+" by "+toOneLine(t.OffBy)))
	}
}

func writeToolEnabled(p *printer, v ops.ToolView) {
	p.writeLine("%s is enabled.", toOneLine(v.Name))
	noteToolStillLocked(p, v.Status)
}

func newToolsDiffCommand(r *invocation) commandSpec {
	kind := kindFlag("tool")
	return commandSpec{
		flags: map[string]any{"kind": (*string)(&kind)}, complete: completeFirstArgument(r.completeFromDaemon(waitingNames(&kind, nil))),
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
			of, err := kind.parseDefinitionRef(args[0])
			if err != nil {
				return err
			}
			d, err := of.fetchDiff(ctx, c)
			if err != nil {
				return err
			}
			return r.printOutput(d.response, func(p *printer) { writeDefinitionDiff(p, d) })
		}),
	}
}

func newToolsApproveCommand(r *invocation) commandSpec {
	var f approveFlags
	kind := kindFlag("tool")
	return commandSpec{
		flags: map[string]any{
			"kind": (*string)(&kind), "yes": &f.yes, "fingerprint": &f.fingerprint,
			"server": &f.server, "all": &f.all, "with-findings": &f.withFindings,
		},
		args: atMostArguments(1), complete: completeFirstArgument(r.completeFromDaemon(waitingNames(&kind, nil))),
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
			kind, err := kind.parseKind()
			if err != nil {
				return err
			}
			server, one, err := f.parseApprovalTarget(kind, args)
			switch {
			case err != nil:
				return err
			case server != "":
				return approveCleanDefinitions(r, ctx, c, kind, server, f)
			}
			return confirmAndApproveDefinition(r, ctx, c, one, f.confirmationFlags)
		}),
	}
}

// newBlockOrUnblockCommand returns a command that blocks or unblocks one definition. Without a fingerprint, it is the
// current definition.
func newBlockOrUnblockCommand(r *invocation, decision definitionDecision) commandSpec {
	var seen ops.SeenFingerprint
	kind := kindFlag("tool")
	return commandSpec{
		flags: map[string]any{"kind": (*string)(&kind), "fingerprint": &seen.Fingerprint}, complete: completeFirstArgument(r.completeFromDaemon(decision.complete(&kind))),
		run: r.withDaemonClient(func(ctx context.Context, c *api.Client, args []string) error {
			of, err := kind.parseDefinitionRef(args[0])
			if err != nil {
				return err
			}
			return decision.run(r, ctx, c, of, seen)
		}),
	}
}
