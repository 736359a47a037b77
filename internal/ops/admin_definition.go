package ops

import (
	"context"
	"encoding/json"
	"fmt"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// definitionUnderReview is the listed definition of a tool, prompt, resource, template or instructions, with the
// decisions about it.
type definitionUnderReview struct {
	approval.CandidateDefinition
	server     string
	status     string              // "" if it can be used
	evaluation approval.Evaluation // the reason why it waits for review, if it does
	pin        *approval.Pin       // the approved definition that it is compared with
	forClients bool
}

// newDefinitionUnderReview evaluates a listed definition with the decisions about it.
func newDefinitionUnderReview(c approval.CandidateDefinition, server, status string, e approval.DefinitionDecisions) definitionUnderReview {
	return definitionUnderReview{CandidateDefinition: c, server: server, status: status, evaluation: approval.Evaluate(approval.EvaluationRules{}, e, c), pin: e.ComparisonBase()}
}

func newToolUnderReview(t *catalog.Tool, decided *approval.ServerView) definitionUnderReview {
	d := newDefinitionUnderReview(t.ApprovalCandidate(), t.ID.Server, "", decided.ToolDecisions(t.ID.Tool))
	d.status = statusWord(t.Status, d.evaluation.Why == approval.Blocked)
	return d
}

func (a *Admin) newPrimitiveUnderReview(server string, o *catalog.Primitive, decided *approval.ServerView) definitionUnderReview {
	d := newDefinitionUnderReview(o.ApprovalCandidate(), server, "", decided.DecisionsOn(o.Kind, o.Name))
	d.status = statusWord(a.Catalog.PrimitiveStatus(server, o), d.evaluation.Why == approval.Blocked)
	d.forClients = o.ForClients
	return d
}

func (d *definitionUnderReview) toolID() tool.ID { return tool.ID{Server: d.server, Tool: d.Tool} }

// isNewOrChanged reports whether an approval of the whole server covers the definition. It returns false for a blocked
// definition, which stays blocked.
func (d *definitionUnderReview) isNewOrChanged() bool {
	return d.evaluation.Why == approval.New || d.evaluation.Why == approval.Changed
}

// separateReviewReason returns the reason why the definition needs a separate review, or "" if it may be approved in a
// batch.
func (d *definitionUnderReview) separateReviewReason() string {
	switch {
	case d.evaluation.Why == approval.Blocked:
		return "a user blocked this definition"
	case len(d.evaluation.Loosened) > 0:
		return "its hints claim less harm than before"
	case d.evaluation.Why == approval.Changed && d.pin == nil:
		return "it has changed, and its approved definition is lost"
	case d.Report().Verdict != scan.Clean:
		return "the scanner reports a finding"
	}
	return ""
}

// approvedFingerprint returns the approved fingerprint, or "" if there is none.
func (d *definitionUnderReview) approvedFingerprint() string {
	if d.pin == nil {
		return ""
	}
	return d.pin.Fingerprint.String()
}

// scanResult returns the scanner's result for the definition.
func (d *definitionUnderReview) scanResult() ScanResult { return toScanResult(d.Report()) }

// toScanResult converts a scan report. The findings are never null in JSON.
func toScanResult(r scan.Report) ScanResult {
	return ScanResult{Verdict: r.Verdict, Findings: append([]scan.Finding{}, r.Findings...)}
}

// pendingInfo returns the reason why a definition waits for review and the time since when it waits.
func (a *Admin) pendingInfo(d *definitionUnderReview) PendingInfo {
	p := PendingInfo{Reason: d.evaluation.Why, Fingerprint: d.Fingerprint.String(), Approved: d.approvedFingerprint(), Together: d.separateReviewReason() == ""}
	if since := a.Book.HeldSince(d.server, d.CandidateDefinition).UTC(); !since.IsZero() {
		p.Since = &since
	}
	return p
}

// approvalStatus returns the fingerprint, the status and the reason for the status.
func (d *definitionUnderReview) approvalStatus() ApprovalStatus {
	return ApprovalStatus{Fingerprint: d.Fingerprint.String(), Status: d.status, Reason: d.evaluation.Why}
}

// compareToApproved returns the definition, the approved definition and their differences.
func (a *Admin) compareToApproved(ctx context.Context, d *definitionUnderReview) (Comparison, error) {
	c := Comparison{Definition: d.Definition, Changes: []approval.Difference{}}
	if d.pin == nil {
		return c, nil
	}
	raw, err := a.Book.ApprovedDefinition(ctx, d.Kind, d.toolID())
	if err != nil {
		return c, err
	}
	if was, err := definitionFingerprint(d.Kind, d.server, raw); err != nil || was != d.pin.Fingerprint {
		// The approved definition was lost with a damaged database, or its approval was just withdrawn. The whole
		// definition is then new.
		return c, nil
	}
	changes, complete, err := approval.Diff(raw, d.Definition)
	if err != nil {
		return c, err
	}
	c.Approved = &ApprovedView{Fingerprint: d.approvedFingerprint(), Definition: raw, By: d.pin.By, At: d.pin.At}
	c.Changes, c.Truncated = append(c.Changes, changes...), !complete
	return c, nil
}

// definitionFingerprint parses a stored definition and returns its fingerprint.
func definitionFingerprint(kind tool.DefinitionKind, server string, raw []byte) (tool.Fingerprint, error) {
	if kind == tool.KindTool {
		d, err := tool.ParseDefinition(server, raw)
		if err != nil {
			return tool.Fingerprint{}, err
		}
		return d.Fingerprint(), nil
	}
	o, err := tool.ParsePrimitive(kind, raw)
	return o.Fingerprint, err
}

// userDecision is a user's decision about a definition.
type userDecision struct {
	action string                                  // for the record, with %s for the kind of the definition
	detail string                                  // for the record
	seen   *SeenFingerprint                        // the definition that the user saw; nil if the decision applies to any
	claim  func(definitionUnderReview) claimToSign // for a decision that grants more access; nil if it does not
	apply  func(ctx context.Context, b *approval.Book, d definitionUnderReview, by string) error
}

// applyDecision finds a definition, checks that it is still the one that the user saw, requires proof of presence if the
// decision grants more access, applies the decision and records it.
func (a *Admin) applyDecision(ctx context.Context, c Caller, of PrimitiveRef, u userDecision) error {
	id, what := tool.ID{Server: of.Server}, "The definition"
	switch of.Kind {
	case tool.KindTool:
		id.Tool = of.Name
		what += " of '" + id.String() + "'"
	case tool.KindInstructions:
	default:
		u.detail = problem.ClipName(of.Name) + " " + u.detail
	}
	return a.runUserAction(c, newActionRecord(c, activity.Approval, id, fmt.Sprintf(u.action, of.Kind.Label()), u.detail), func() error {
		d, err := a.findDefinition(of)
		if err == nil && u.seen != nil {
			err = checkFingerprint(what, d.Fingerprint.String(), u.seen.Fingerprint)
		}
		if err == nil && u.claim != nil {
			err = a.Presence.RequireSigned(ctx, u.claim(d))
		}
		if err == nil {
			err = u.apply(ctx, a.Book, d, c.Actor.String())
		}
		return err
	})
}

// checkFingerprint rejects a missing or outdated fingerprint.
func checkFingerprint(what, current, given string) error {
	switch given {
	case current:
		return nil
	case "":
		return problem.New(problem.InvalidParameter, "The fingerprint of the reviewed definition is missing.",
			"Review the definition first, and send its fingerprint.").With("parameter", "fingerprint")
	}
	const shown = 12 // digits
	return problem.Newf(problem.Conflict, "%s has changed since you reviewed it, or the given fingerprint is wrong or incomplete. The current one starts with %s.", what, current[:min(len(current), shown)]).
		WithHint("Review it again, then decide.").With("fingerprint", current)
}

// approvalClaim returns the claim that a user signs to approve the definition.
func (d definitionUnderReview) approvalClaim() claimToSign {
	return approval.ApprovalClaim(d.server, d.CandidateDefinition)
}

// newApproval returns the approval of the definition that the user saw. It applies to definitions that need no separate
// review, if together is set.
func newApproval(seen *SeenFingerprint, together bool) userDecision {
	approve := func(ctx context.Context, b *approval.Book, d definitionUnderReview, by string) error {
		if together && d.evaluation.Why == "" {
			return nil // it is already approved
		}
		if why := d.separateReviewReason(); together && why != "" {
			look := "tools diff " + d.toolID().String()
			if d.Kind != tool.KindTool {
				look = "approvals"
			}
			return problem.Newf(problem.Conflict, "'%s' is not approved together with others: %s.", d.toolID(), why).
				WithHint("Look at it with `mcpproxy " + look + "`, then decide about it separately.")
		}
		return b.Approve(ctx, d.server, by, []approval.CandidateDefinition{d.CandidateDefinition}, nil)
	}
	return userDecision{"approve_%s", seen.clipped(), seen, definitionUnderReview.approvalClaim, approve}
}

// newBlock returns the decision that blocks the definition that the user saw.
func newBlock(seen *SeenFingerprint) userDecision {
	block := func(ctx context.Context, b *approval.Book, d definitionUnderReview, by string) error {
		return b.Block(ctx, d.Kind, d.toolID(), d.Fingerprint, by)
	}
	return userDecision{"block_%s", seen.clipped(), seen, nil, block}
}

// newWithdrawal returns the decision that withdraws an approval. Its fingerprint is the one of the approved definition, not
// of the listed one.
func (a *Admin) newWithdrawal(server string, approved SeenFingerprint, detail string) userDecision {
	return userDecision{action: "withdraw_%s", detail: detail, apply: func(ctx context.Context, b *approval.Book, d definitionUnderReview, by string) error {
		if d.pin == nil {
			return problem.New(problem.Conflict, "It has no approved definition, so there is nothing to revoke.", "Review it again, then decide.")
		}
		if err := checkFingerprint("The approved definition", d.approvedFingerprint(), approved.Fingerprint); err != nil {
			return err
		}
		return b.UndoApproval(ctx, d.CandidateDefinition, d.toolID(), d.pin.Fingerprint, configuredTrust(a.Config(), server), by)
	}}
}

// newUnblock returns the decision that unblocks the definition that the user saw.
func (a *Admin) newUnblock(server string, seen *SeenFingerprint) userDecision {
	unblock := func(ctx context.Context, b *approval.Book, d definitionUnderReview, by string) error {
		return b.Unblock(ctx, d.CandidateDefinition, d.toolID(), configuredTrust(a.Config(), server), by)
	}
	return userDecision{"unblock_%s", seen.clipped(), seen, nil, unblock}
}

// configuredTrust returns the trust setting of a server. For a server that is not configured, it returns Manual, the
// lowest.
func configuredTrust(c *config.Config, server string) approval.Trust {
	if s := c.Server(server); s != nil {
		return approval.Trust(s.Trust)
	}
	return approval.Manual
}

// newSwitch returns the decision that enables or disables a tool.
func newSwitch(on bool) userDecision {
	u := userDecision{action: "switch_%s_off", apply: func(ctx context.Context, b *approval.Book, d definitionUnderReview, by string) error {
		return b.SwitchTool(ctx, d.toolID(), on, by)
	}}
	if on {
		u.action, u.claim = "switch_%s_on", func(d definitionUnderReview) claimToSign { return approval.SwitchOnClaim(d.toolID()) }
	}
	return u
}

// EnableTool enables a tool.
func (a *Admin) EnableTool(ctx context.Context, c Caller, in ToolRef) (ToolView, error) {
	return a.applyToolDecision(ctx, c, in, newSwitch(true))
}

// DisableTool disables a tool.
func (a *Admin) DisableTool(ctx context.Context, c Caller, in ToolRef) (ToolView, error) {
	return a.applyToolDecision(ctx, c, in, newSwitch(false))
}

// ApproveTool approves the definition that the user saw, if the server still lists it. With Keep, the configuration
// first marks the tool as destructive.
func (a *Admin) ApproveTool(ctx context.Context, c Caller, in ToolApproval) (ToolView, error) {
	if in.Keep != "" {
		if err := a.markToolDestructive(ctx, c, in); err != nil {
			return ToolView{}, err
		}
	}
	v, err := a.applyToolDecision(ctx, c, in.ToolRef, newApproval(&in.SeenFingerprint, false))
	if err != nil && in.Keep != "" {
		p := *problem.From(err)
		p.Message = "The tool is now treated as destructive, but its definition is not approved: " + p.Message
		err = p.With("holds", "hint_overrides")
	}
	return v, err
}

// WithdrawToolApproval withdraws the approval of a tool's definition. The tool waits for review again. The previously
// approved definition is valid again, if there is one.
func (a *Admin) WithdrawToolApproval(ctx context.Context, c Caller, in ToolDecision) (ToolView, error) {
	return a.applyToolDecision(ctx, c, in.ToolRef, a.newWithdrawal(in.Server, in.SeenFingerprint, ""))
}

// BlockTool blocks the definition that the user saw, if the server still lists it, and withdraws its approval.
func (a *Admin) BlockTool(ctx context.Context, c Caller, in ToolDecision) (ToolView, error) {
	return a.applyToolDecision(ctx, c, in.ToolRef, newBlock(&in.SeenFingerprint))
}

// UnblockTool unblocks a tool's definition. The tool then waits for review again.
func UnblockTool(a *Admin, ctx context.Context, c Caller, in ToolDecision) (ToolView, error) {
	return a.applyToolDecision(ctx, c, in.ToolRef, a.newUnblock(in.Server, &in.SeenFingerprint))
}

// applyToolDecision applies and records a decision about a tool, and returns the tool's new view.
func (a *Admin) applyToolDecision(ctx context.Context, c Caller, in ToolRef, u userDecision) (ToolView, error) {
	if err := a.applyDecision(ctx, c, in.definition(), u); err != nil {
		return ToolView{}, err
	}
	return a.Tool(ctx, c, in)
}

// DiffTool returns a tool's approved definition, its listed definition and their differences.
func (a *Admin) DiffTool(ctx context.Context, _ Caller, in ToolRef) (ToolDiff, error) {
	d, err := a.findDefinition(in.definition())
	if err != nil {
		return ToolDiff{}, err
	}
	of, err := a.compareToApproved(ctx, &d)
	return ToolDiff{
		Name: d.toolID().String(), Server: d.server, Tool: in.Tool, Status: d.status, Reason: d.evaluation.Why, Fingerprint: d.Fingerprint.String(),
		Comparison: of, Loosened: d.evaluation.Loosened, ScanResult: d.scanResult(),
	}, err
}

// ApprovePrimitive approves the definition of a prompt, a resource, a template or the instructions, if the server still
// lists the definition that the user saw.
func (a *Admin) ApprovePrimitive(ctx context.Context, c Caller, in PrimitiveDecision) (OfferDiff, error) {
	return a.applyPrimitiveDecision(ctx, c, in, newApproval(&in.SeenFingerprint, false))
}

// BlockPrimitive blocks the definition of a prompt, resource, template or instructions and withdraws its approval.
func (a *Admin) BlockPrimitive(ctx context.Context, c Caller, in PrimitiveDecision) (OfferDiff, error) {
	return a.applyPrimitiveDecision(ctx, c, in, newBlock(&in.SeenFingerprint))
}

// UnblockPrimitive unblocks the definition, which then waits for review again.
func UnblockPrimitive(a *Admin, ctx context.Context, c Caller, in PrimitiveDecision) (OfferDiff, error) {
	return a.applyPrimitiveDecision(ctx, c, in, a.newUnblock(in.Server, &in.SeenFingerprint))
}

// applyPrimitiveDecision applies and records a decision about a prompt, resource, template or instructions, and returns
// the new comparison.
func (a *Admin) applyPrimitiveDecision(ctx context.Context, c Caller, in PrimitiveDecision, u userDecision) (OfferDiff, error) {
	if err := a.applyDecision(ctx, c, in.PrimitiveRef, u); err != nil {
		return OfferDiff{}, err
	}
	return a.DiffPrimitive(ctx, c, in.PrimitiveRef)
}

// WithdrawPrimitiveApproval withdraws the approval of the definition, which then waits for review again.
func (a *Admin) WithdrawPrimitiveApproval(ctx context.Context, c Caller, in PrimitiveDecision) (OfferDiff, error) {
	return a.applyPrimitiveDecision(ctx, c, in, a.newWithdrawal(in.Server, in.SeenFingerprint, in.clipped()))
}

// findDefinition returns a listed definition. It returns TOOL_NOT_FOUND or NOT_FOUND if the server does not list it.
func (a *Admin) findDefinition(in PrimitiveRef) (definitionUnderReview, error) {
	if in.Kind == tool.KindTool {
		t, err := a.findTool(tool.ID{Server: in.Server, Tool: in.Name})
		if err != nil {
			return definitionUnderReview{}, err
		}
		return newToolUnderReview(t, a.Book.ServerView(in.Server)), nil
	}
	s, err := a.findServer(in.Server)
	if err != nil {
		return definitionUnderReview{}, err
	}
	a.Offers.StoreChangedInstructions(context.Background(), s) // loads the instructions
	if o := a.Catalog.Primitives(in.Server).FindReviewable(in.Kind, in.Name); o != nil {
		return a.newPrimitiveUnderReview(in.Server, o, a.Book.ServerView(in.Server)), nil
	}
	if in.Kind == tool.KindInstructions {
		return definitionUnderReview{}, problem.Newf(problem.NotFound, "Server '%s' has no instructions.", in.Server).
			WithHint("See the pending approvals with `mcpproxy approvals`.")
	}
	return definitionUnderReview{}, problem.Newf(problem.NotFound, "Server '%s' has no known %s '%s'.", in.Server, in.Kind.Label(), problem.ClipName(in.Name)).
		WithHint("List its definitions with `mcpproxy upstream review " + in.Server + "`.")
}

// DiffPrimitive returns the approved and the listed definition of a prompt, resource, template or instructions, with
// their differences.
func (a *Admin) DiffPrimitive(ctx context.Context, _ Caller, in PrimitiveRef) (OfferDiff, error) {
	d, err := a.findDefinition(in)
	if err != nil {
		return OfferDiff{}, err
	}
	of, err := a.compareToApproved(ctx, &d)
	return OfferDiff{
		Kind: d.Kind, Server: d.server, Name: d.Tool, Status: d.status, Reason: d.evaluation.Why, Fingerprint: d.Fingerprint.String(),
		Comparison: of, ScanResult: d.scanResult(),
	}, err
}

// destructiveHints is the hint override for a tool that a user marks as destructive.
const destructiveHints = `{"destructiveHint":true,"readOnlyHint":false}`

// markToolDestructive writes a hint override to the configuration, so that the tool counts as destructive. It requires
// that the tool's definition is the one that the user saw.
func (a *Admin) markToolDestructive(ctx context.Context, c Caller, in ToolApproval) error {
	id := tool.ID(in.ToolRef)
	if in.Keep != "destructive" {
		return problem.Newf(problem.InvalidParameter, "Invalid value for keep: '%s'", problem.ClipName(in.Keep)).
			WithHint("It must be destructive, or absent.").With("parameter", "keep").With("allowed", []string{"destructive"})
	}
	record := newActionRecord(c, activity.ConfigChange, id, "keep_destructive", problem.ClipName(in.Fingerprint))
	return a.runUserAction(c, record, func() error {
		d, err := a.findDefinition(in.definition())
		if err == nil {
			err = checkFingerprint("The definition of '"+id.String()+"'", d.Fingerprint.String(), in.Fingerprint)
		}
		if err == nil {
			err = a.editor.SetHintOverride(a.configConfirmFunc(ctx), id.Server, id.Tool, json.RawMessage(destructiveHints))
		}
		if err != nil {
			return err
		}
		if t, err := a.findTool(id); err != nil || t.Effective.Destructive != tool.True || t.Effective.ReadOnly != tool.False {
			return problem.Newf(problem.Conflict, "The entry of '%s' in hint_overrides has no effect, because a later pattern overrides it. Nothing was approved.", id).
				WithHint("Change that pattern, or move the entry after it, and try again.").With("holds", "hint_overrides")
		}
		return nil
	})
}

// checkBatchSize rejects an empty batch and a batch with more than MaxBatch items.
func checkBatchSize(n int, what, done, parameter string) error {
	if n > 0 && n <= MaxBatch {
		return nil
	}
	return problem.Newf(problem.InvalidParameter, "%d %s are named: from 1 to %d are %s at once.", n, what, MaxBatch, done).
		WithHint("Use several requests.").With("parameter", parameter).With("limit", MaxBatch)
}

// ApproveTools approves several definitions that the user saw. Each is decided and recorded separately. It rejects
// blocked definitions and definitions with scanner findings or relaxed hints, because they need a separate review.
func (a *Admin) ApproveTools(ctx context.Context, c Caller, in ToolsApproval) ([]BatchDecision, error) {
	if err := checkBatchSize(len(in.Tools), "definitions", "approved", "tools"); err != nil {
		return nil, err
	}
	if err := a.requirePresenceForBatch(ctx, c, in); err != nil {
		return nil, err
	}
	all := make([]BatchDecision, len(in.Tools))
	for i, one := range in.Tools {
		all[i].Name = one.Name
		ref, err := one.ParseRef()
		if err == nil {
			err = a.applyDecision(ctx, c, ref, newApproval(&SeenFingerprint{Fingerprint: one.Fingerprint}, true))
		}
		all[i].Problem = err
		if err := ctx.Err(); err != nil {
			return nil, err // the client disconnected
		}
	}
	return all, nil
}

// requirePresenceForBatch requires proof of presence once for all definitions of the batch that can be approved.
func (a *Admin) requirePresenceForBatch(ctx context.Context, c Caller, in ToolsApproval) error {
	if !c.IsUser() || !a.Presence.IsOn() {
		return nil // for other actors, each decision returns an error
	}
	var claims []claimToSign
	for _, one := range in.Tools {
		ref, err := one.ParseRef()
		if err != nil {
			continue
		}
		if d, err := a.findDefinition(ref); err == nil && d.Fingerprint.String() == one.Fingerprint {
			claims = append(claims, d.approvalClaim())
		}
	}
	return a.Presence.RequireSigned(ctx, claims...)
}
