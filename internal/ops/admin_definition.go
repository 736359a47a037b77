package ops

import (
	"context"

	"mcpproxy/internal/catalog"
	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/config"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
)

// definition is a definition of a tool, prompt, resource, template or instructions under review: what the server lists, and the decisions about it.
type definition struct {
	approval.CandidateDefinition
	server     string
	status     string              // "" when it can be used
	evaluation approval.Evaluation // why it waits for review, if it does
	pin        *approval.Pin
	forClients bool
}

func newDefinition(c approval.CandidateDefinition, server, status string, e approval.ItemDecisions) definition {
	return definition{CandidateDefinition: c, server: server, status: status, evaluation: approval.Evaluate(approval.EvaluationRules{}, e, c), pin: e.Pin}
}

func newToolDefinition(t *catalog.Tool, decided *approval.ServerView) definition {
	d := newDefinition(t.ApprovalCandidate(), t.ID.Server, "", decided.ToolDecisions(t.ID.Tool))
	d.status = statusWord(t.Status, d.evaluation.Why == approval.Blocked)
	return d
}

func (a *Admin) primitiveDefinition(server string, o *catalog.Primitive, decided *approval.ServerView) definition {
	d := newDefinition(o.ApprovalCandidate(), server, "", decided.DecisionsOn(o.Kind, o.Name))
	d.status = statusWord(a.Catalog.PrimitiveStatus(server, o), d.evaluation.Why == approval.Blocked)
	d.forClients = o.ForClients
	return d
}

func (d *definition) toolID() tool.ID { return tool.ID{Server: d.server, Tool: d.Tool} }

// needsReview reports whether an approval of the whole server covers the definition. A blocked definition stays blocked.
func (d *definition) needsReview() bool {
	return d.evaluation.Why == approval.New || d.evaluation.Why == approval.Changed
}

// separateReviewReason returns why a user must review the definition by itself; "" when it may be approved in a batch.
func (d *definition) separateReviewReason() string {
	switch {
	case d.evaluation.Why == approval.Blocked:
		return "a person has refused this definition"
	case len(d.evaluation.Loosened) > 0:
		return "its hints claim more harmless effects than before"
	case d.evaluation.Why == approval.Changed && d.pin == nil:
		return "it has changed, and what was approved of it is lost"
	case d.Report().Verdict != scan.Clean:
		return "the scanner has found something in it"
	}
	return ""
}

// approvedFingerprint returns the approved fingerprint, "" when there is none.
func (d *definition) approvedFingerprint() string {
	if d.pin == nil {
		return ""
	}
	return d.pin.Fingerprint.String()
}

// scanResult returns the scanner's result for the definition.
func (d *definition) scanResult() Scanned { return scanResult(d.Report()) }

// scanResult converts a report. Its findings are never null in JSON.
func scanResult(r scan.Report) Scanned {
	return Scanned{Verdict: r.Verdict, Findings: append([]scan.Finding{}, r.Findings...)}
}

// pending returns why and since when a definition waits for review.
func (a *Admin) pending(d *definition) Pending {
	p := Pending{Reason: d.evaluation.Why, Fingerprint: d.Fingerprint.String(), Approved: d.approvedFingerprint(), Together: d.separateReviewReason() == ""}
	if since := a.Book.HeldSince(d.server, d.CandidateDefinition).UTC(); !since.IsZero() {
		p.Since = &since
	}
	return p
}

// approvalStatus returns the fingerprint, the status and the reason of the status.
func (d *definition) approvalStatus() Standing {
	return Standing{Fingerprint: d.Fingerprint.String(), Status: d.status, Reason: d.evaluation.Why}
}

// compareToApproved returns the definition, the approved definition and their differences.
func (a *Admin) compareToApproved(ctx context.Context, d *definition) (Compared, error) {
	c := Compared{Definition: d.Definition, Changes: []approval.Difference{}}
	if d.pin == nil {
		return c, nil
	}
	raw, err := a.Book.ApprovedDefinition(ctx, d.Kind, d.toolID())
	if err != nil {
		return c, err
	}
	if was, err := parseFingerprint(d.Kind, d.server, raw); err != nil || was != d.pin.Fingerprint {
		// The approved definition was lost with a damaged database, or was withdrawn just now. Without it the whole definition is new.
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

func parseFingerprint(kind tool.DefinitionKind, server string, raw []byte) (tool.Fingerprint, error) {
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

// applyDecision finds a definition, checks that it is still the one the user saw, applies the decision and records it. Without seen, the decision
// applies to any definition of the tool.
func (a *Admin) applyDecision(ctx context.Context, c Caller, record activity.Record, what string, seen *Seen, find func() (definition, error), decide decision) error {
	return a.runUserAction(c, record, func() error {
		d, err := find()
		if err == nil && seen != nil {
			err = checkFingerprint(what, d.Fingerprint.String(), seen.Fingerprint)
		}
		if err == nil {
			err = decide(ctx, a.Book, d, c.Actor.String())
		}
		return err
	})
}

// decision applies a user's decision to a definition.
type decision func(ctx context.Context, b *approval.Book, d definition, by string) error

// withPresence returns a decision that requires proof of presence first, because it grants more access.
func (a *Admin) withPresence(decide decision, claim func(definition) claim) decision {
	return func(ctx context.Context, b *approval.Book, d definition, by string) error {
		if err := a.Presence.RequireSigned(ctx, claim(d)); err != nil {
			return err
		}
		return decide(ctx, b, d, by)
	}
}

// approvalClaim returns the statement that a user signs to approve the definition.
func (d definition) approvalClaim() claim {
	return approval.ApprovalClaim(d.server, d.CandidateDefinition)
}

// enableClaim returns the statement that a user signs to enable the tool.
func (d definition) enableClaim() claim {
	return approval.SwitchClaim(d.toolID())
}

func approve(ctx context.Context, b *approval.Book, d definition, by string) error {
	return b.Approve(ctx, d.server, by, []approval.CandidateDefinition{d.CandidateDefinition}, nil)
}

func block(ctx context.Context, b *approval.Book, d definition, by string) error {
	return b.Block(ctx, d.Kind, d.toolID(), d.Fingerprint, by)
}

// withdraw returns the decision that withdraws an approval. Its fingerprint is that of the approved definition, not of the listed one.
func withdraw(approved Seen, trust approval.Trust) decision {
	return func(ctx context.Context, b *approval.Book, d definition, by string) error {
		if d.pin == nil {
			return problem.New(problem.Conflict, "No definition of it is approved, so there is nothing to take back.", "Look at it again, then decide.")
		}
		if err := checkFingerprint("The approved definition", d.approvedFingerprint(), approved.Fingerprint); err != nil {
			return err
		}
		return b.UndoApproval(ctx, d.CandidateDefinition, d.toolID(), d.pin.Fingerprint, trust, by)
	}
}

// unblock returns the decision that unblocks a definition.
func unblock(trust approval.Trust) decision {
	return func(ctx context.Context, b *approval.Book, d definition, by string) error {
		return b.Unblock(ctx, d.Kind, d.toolID(), d.Fingerprint, trust, by)
	}
}

// serverTrust returns the trust in a server: Manual, the lowest, for a server that is not configured.
func serverTrust(c *config.Config, server string) approval.Trust {
	if s := c.Server(server); s != nil {
		return approval.Trust(s.Trust)
	}
	return approval.Manual
}

func setEnabled(on bool) decision {
	return func(ctx context.Context, b *approval.Book, d definition, by string) error {
		return b.SwitchTool(ctx, d.toolID(), on, by)
	}
}

// EnableTool enables a tool.
func (a *Admin) EnableTool(ctx context.Context, c Caller, in ToolRef) (ToolView, error) {
	return a.decideTool(ctx, c, in, "switch_tool_on", nil, a.withPresence(setEnabled(true), definition.enableClaim))
}

// DisableTool disables a tool.
func (a *Admin) DisableTool(ctx context.Context, c Caller, in ToolRef) (ToolView, error) {
	return a.decideTool(ctx, c, in, "switch_tool_off", nil, setEnabled(false))
}

// ApproveTool approves the definition that the user saw, if the server still lists it. With Keep, the configuration first marks the tool as destructive.
func (a *Admin) ApproveTool(ctx context.Context, c Caller, in ToolApproval) (ToolView, error) {
	if in.Keep == "" {
		return a.decideTool(ctx, c, in.ToolRef, "approve_tool", &in.Seen, a.withPresence(approve, definition.approvalClaim))
	}
	if err := a.keepDestructive(ctx, c, in); err != nil {
		return ToolView{}, err
	}
	v, err := a.decideTool(ctx, c, in.ToolRef, "approve_tool", &in.Seen, a.withPresence(approve, definition.approvalClaim))
	if err != nil {
		p := *problem.From(err)
		p.Message = "The tool counts as destructive from now on, but its definition is not approved: " + p.Message
		err = p.With("holds", "hint_overrides")
	}
	return v, err
}

// WithdrawTool withdraws the approval of a tool's definition. The tool waits for review again; the definition that was approved before it is valid
// again, if there is one.
func (a *Admin) WithdrawTool(ctx context.Context, c Caller, in ToolDecision) (ToolView, error) {
	return a.decideTool(ctx, c, in.ToolRef, "withdraw_tool", nil, withdraw(in.Seen, serverTrust(a.Config(), in.Server)))
}

// BlockTool blocks the definition that the user saw, if the server still lists it, and withdraws its approval.
func (a *Admin) BlockTool(ctx context.Context, c Caller, in ToolDecision) (ToolView, error) {
	return a.decideTool(ctx, c, in.ToolRef, "block_tool", &in.Seen, block)
}

// UnblockTool unblocks a tool's definition: it waits for review again.
func UnblockTool(a *Admin, ctx context.Context, c Caller, in ToolDecision) (ToolView, error) {
	return a.decideTool(ctx, c, in.ToolRef, "unblock_tool", &in.Seen, unblock(serverTrust(a.Config(), in.Server)))
}

// decideTool applies and records a decision about a tool, and returns the tool's new view.
func (a *Admin) decideTool(ctx context.Context, c Caller, in ToolRef, action string, seen *Seen, decide decision) (ToolView, error) {
	id, detail := tool.ID(in), ""
	if seen != nil {
		detail = problem.ClipName(seen.Fingerprint)
	}
	record := NewActionRecord(c, activity.Approval, id, action, detail)
	err := a.applyDecision(ctx, c, record, "The definition of '"+id.String()+"'", seen, func() (definition, error) { return a.findTool(id) }, decide)
	if err != nil {
		return ToolView{}, err
	}
	return a.Tool(ctx, c, in)
}

func (a *Admin) findTool(id tool.ID) (definition, error) {
	t, err := a.FindTool(id)
	if err != nil {
		return definition{}, err
	}
	return newToolDefinition(t, a.Book.View(id.Server)), nil
}

// DiffTool returns a tool's approved definition, its listed definition and their differences.
func (a *Admin) DiffTool(ctx context.Context, _ Caller, in ToolRef) (ToolDiff, error) {
	d, err := a.findTool(tool.ID(in))
	if err != nil {
		return ToolDiff{}, err
	}
	of, err := a.compareToApproved(ctx, &d)
	return ToolDiff{
		Name: d.toolID().String(), Server: d.server, Tool: in.Tool, Status: d.status, Reason: d.evaluation.Why, Fingerprint: d.Fingerprint.String(),
		Compared: of, Loosened: d.evaluation.Loosened, Scanned: d.scanResult(),
	}, err
}

// ApprovePrimitive approves the definition of a prompt, resource, template or instructions that the user saw, if the server still lists it.
func (a *Admin) ApprovePrimitive(ctx context.Context, c Caller, in OfferDecision) (OfferDiff, error) {
	return a.decidePrimitive(ctx, c, in, "approve_", &in.Seen, a.withPresence(approve, definition.approvalClaim))
}

// BlockPrimitive blocks the definition and withdraws its approval.
func (a *Admin) BlockPrimitive(ctx context.Context, c Caller, in OfferDecision) (OfferDiff, error) {
	return a.decidePrimitive(ctx, c, in, "block_", &in.Seen, block)
}

// UnblockPrimitive unblocks the definition: it waits for review again.
func UnblockPrimitive(a *Admin, ctx context.Context, c Caller, in OfferDecision) (OfferDiff, error) {
	return a.decidePrimitive(ctx, c, in, "unblock_", &in.Seen, unblock(serverTrust(a.Config(), in.Server)))
}

func (a *Admin) decidePrimitive(ctx context.Context, c Caller, in OfferDecision, action string, seen *Seen, decide decision) (OfferDiff, error) {
	detail := problem.ClipName(in.Fingerprint)
	if in.Kind != tool.KindInstructions {
		detail = problem.ClipName(in.Name) + " " + detail
	}
	record := NewActionRecord(c, activity.Approval, tool.ID{Server: in.Server}, action+string(in.Kind), detail)
	err := a.applyDecision(ctx, c, record, "The definition", seen, func() (definition, error) { return a.findPrimitive(in.OfferRef) }, decide)
	if err != nil {
		return OfferDiff{}, err
	}
	return a.DiffPrimitive(ctx, c, in.OfferRef)
}

// WithdrawPrimitive withdraws the approval of the definition: it waits for review again.
func (a *Admin) WithdrawPrimitive(ctx context.Context, c Caller, in OfferDecision) (OfferDiff, error) {
	return a.decidePrimitive(ctx, c, in, "withdraw_", nil, withdraw(in.Seen, serverTrust(a.Config(), in.Server)))
}

// findPrimitive returns the definition of a listed prompt, resource, template or instructions, or NOT_FOUND.
func (a *Admin) findPrimitive(in OfferRef) (definition, error) {
	s, err := a.FindServer(in.Server)
	if err != nil {
		return definition{}, err
	}
	a.Offers.RefreshInstructions(context.Background(), s) // loads what the server reported about itself
	if o := a.Catalog.Primitives(in.Server).Find(in.Kind, in.Name); o != nil {
		return a.primitiveDefinition(in.Server, o, a.Book.View(in.Server)), nil
	}
	if in.Kind == tool.KindInstructions {
		return definition{}, problem.Newf(problem.NotFound, "Server '%s' has no instructions.", in.Server).
			WithHint("See what waits with `mcpproxy approvals`.")
	}
	return definition{}, problem.Newf(problem.NotFound, "Server '%s' has no %s '%s', as far as is known.", in.Server, in.Kind.Label(), problem.ClipName(in.Name)).
		WithHint("See what the server offers with `mcpproxy upstream review " + in.Server + "`.")
}

// DiffPrimitive returns the approved definition of a prompt, resource, template or instructions, the listed one and their differences.
func (a *Admin) DiffPrimitive(ctx context.Context, _ Caller, in OfferRef) (OfferDiff, error) {
	d, err := a.findPrimitive(in)
	if err != nil {
		return OfferDiff{}, err
	}
	of, err := a.compareToApproved(ctx, &d)
	return OfferDiff{
		Kind: d.Kind, Server: d.server, Name: d.Tool, Status: d.status, Reason: d.evaluation.Why, Fingerprint: d.Fingerprint.String(),
		Compared: of, Scanned: d.scanResult(),
	}, err
}
