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

// definition is one definition of a server as there is to decide about it: of a
// tool, or of something else that the server offers.
type definition struct {
	approval.Candidate
	server     string
	status     string              // "" when it can be used
	waits      approval.Evaluation // why, if it does
	pin        *approval.Pin
	forClients bool
}

func define(c approval.Candidate, server, status string, e approval.Entry) definition {
	return definition{Candidate: c, server: server, status: status, waits: approval.Evaluate(approval.Rules{}, e, c), pin: e.Pin}
}

func toolDefinition(t *catalog.Tool, decided *approval.View) definition {
	d := define(t.Candidate(), t.ID.Server, "", decided.Tool(t.ID.Tool))
	d.status = statusWord(t.Status, d.waits.Why == approval.Blocked)
	return d
}

func (a *Admin) offerDefinition(server string, o *catalog.Primitive, decided *approval.View) definition {
	d := define(o.Candidate(), server, "", decided.Of(o.Kind, o.Name))
	d.status = statusWord(a.Catalog.PrimitiveStatus(server, o), d.waits.Why == approval.Blocked)
	d.forClients = o.ForClients
	return d
}

func (d *definition) id() tool.ID { return tool.ID{Server: d.server, Tool: d.Tool} }

// unsettled reports whether a person's approval of everything is about it: what
// is blocked stays blocked.
func (d *definition) unsettled() bool {
	return d.waits.Why == approval.New || d.waits.Why == approval.Changed
}

// alone returns why a person has to look at it by itself; "" when it may be
// approved together with others.
func (d *definition) alone() string {
	switch {
	case d.waits.Why == approval.Blocked:
		return "a person has refused this definition"
	case len(d.waits.Loosened) > 0:
		return "its hints claim more harmless effects than before"
	case d.waits.Why == approval.Changed && d.pin == nil:
		return "it has changed, and what was approved of it is lost"
	case d.Report().Verdict != scan.Clean:
		return "the scanner has found something in it"
	}
	return ""
}

// approved is the fingerprint that is approved, "" when none is.
func (d *definition) approved() string {
	if d.pin == nil {
		return ""
	}
	return d.pin.Fingerprint.String()
}

// scanned returns what the scanner says of it.
func (d *definition) scanned() Scanned { return scanned(d.Report()) }

// scanned returns a report whose findings are never null in JSON.
func scanned(r scan.Report) Scanned {
	return Scanned{Verdict: r.Verdict, Findings: append([]scan.Finding{}, r.Findings...)}
}

// pending returns why a definition waits, and since when.
func (a *Admin) pending(d *definition) Pending {
	p := Pending{Reason: d.waits.Why, Fingerprint: d.Fingerprint.String(), Approved: d.approved(), Together: d.alone() == ""}
	if since := a.Book.Since(d.server, d.Candidate).UTC(); !since.IsZero() {
		p.Since = &since
	}
	return p
}

// standing returns how it stands.
func (d *definition) standing() Standing {
	return Standing{Fingerprint: d.Fingerprint.String(), Status: d.status, Reason: d.waits.Why}
}

// compared returns it beside the approved one.
func (a *Admin) compared(ctx context.Context, d *definition) (Compared, error) {
	c := Compared{Definition: d.Definition, Changes: []approval.Difference{}}
	if d.pin == nil {
		return c, nil
	}
	raw, err := a.Book.Definition(ctx, d.Kind, d.id())
	if err != nil {
		return c, err
	}
	if was, err := fingerprint(d.Kind, d.server, raw); err != nil || was != d.pin.Fingerprint {
		// Lost with a damaged database, or approved no more at this very moment.
		// There is nothing to hold the new one against: all of it is new.
		return c, nil
	}
	changes, complete, err := approval.Diff(raw, d.Definition)
	if err != nil {
		return c, err
	}
	c.Approved = &ApprovedView{Fingerprint: d.approved(), Definition: raw, By: d.pin.By, At: d.pin.At}
	c.Changes, c.Truncated = append(c.Changes, changes...), !complete
	return c, nil
}

func fingerprint(kind tool.Kind, server string, raw []byte) (tool.Fingerprint, error) {
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

// decide has a person decide about a definition that is there, if what was seen is
// still it. Without seen it is about the tool, whatever its definition.
func (a *Admin) decide(ctx context.Context, c Caller, record activity.Record, what string, seen *Seen, find func() (definition, error), decide decision) error {
	return a.act(c, record, func() error {
		d, err := find()
		if err == nil && seen != nil {
			err = same(what, d.Fingerprint.String(), seen.Fingerprint)
		}
		if err == nil {
			err = decide(ctx, a.Book, d, c.Actor.String())
		}
		return err
	})
}

// decision is what a person decides about a definition.
type decision func(ctx context.Context, b *approval.Book, d definition, by string) error

// permitted is a decision that widens: a person has to sign it.
func (a *Admin) permitted(decide decision, claim func(definition) claim) decision {
	return func(ctx context.Context, b *approval.Book, d definition, by string) error {
		if err := a.Presence.Require(ctx, claim(d)); err != nil {
			return err
		}
		return decide(ctx, b, d, by)
	}
}

// approval is what a person signs who approves the definition.
func (d definition) approval() claim { return approval.ClaimOf(d.server, d.Candidate) }

// switchedOn is what a person signs who switches the tool on.
func (d definition) switchedOn() claim {
	return approval.SwitchClaim(d.id())
}

func approve(ctx context.Context, b *approval.Book, d definition, by string) error {
	return b.Approve(ctx, d.server, by, []approval.Candidate{d.Candidate}, nil)
}

func block(ctx context.Context, b *approval.Book, d definition, by string) error {
	return b.Block(ctx, d.Kind, d.id(), d.Fingerprint, by)
}

// withdraw takes an approval back. What it names is the approved definition, not
// the one that is there.
func withdraw(approved Seen, trust approval.Trust) decision {
	return func(ctx context.Context, b *approval.Book, d definition, by string) error {
		if d.pin == nil {
			return problem.New(problem.Conflict, "No definition of it is approved, so there is nothing to take back.", "Look at it again, then decide.")
		}
		if err := same("The approved definition", d.approved(), approved.Fingerprint); err != nil {
			return err
		}
		return b.TakeBack(ctx, d.Candidate, d.id(), d.pin.Fingerprint, trust, by)
	}
}

// unblock ends the refusal of a definition.
func unblock(trust approval.Trust) decision {
	return func(ctx context.Context, b *approval.Book, d definition, by string) error {
		return b.Unblock(ctx, d.Kind, d.id(), d.Fingerprint, trust, by)
	}
}

// trustIn returns the trust in a server; that in one which is not configured is the least.
func trustIn(c *config.Config, server string) approval.Trust {
	if s := c.Server(server); s != nil {
		return approval.Trust(s.Trust)
	}
	return approval.Manual
}

func switched(on bool) decision {
	return func(ctx context.Context, b *approval.Book, d definition, by string) error {
		return b.Switch(ctx, d.id(), on, by)
	}
}

// EnableTool switches a tool on, in the name of a person.
func (a *Admin) EnableTool(ctx context.Context, c Caller, in ToolRef) (ToolView, error) {
	return a.decideTool(ctx, c, in, "switch_tool_on", nil, a.permitted(switched(true), definition.switchedOn))
}

// DisableTool switches a tool off, in the name of a person.
func (a *Admin) DisableTool(ctx context.Context, c Caller, in ToolRef) (ToolView, error) {
	return a.decideTool(ctx, c, in, "switch_tool_off", nil, switched(false))
}

// ApproveTool approves the definition of a tool that was seen, if it is still the
// one that the server lists. With Keep it counts as destructive from before that.
func (a *Admin) ApproveTool(ctx context.Context, c Caller, in ToolApproval) (ToolView, error) {
	if in.Keep == "" {
		return a.decideTool(ctx, c, in.ToolRef, "approve_tool", &in.Seen, a.permitted(approve, definition.approval))
	}
	if err := a.keep(ctx, c, in); err != nil {
		return ToolView{}, err
	}
	v, err := a.decideTool(ctx, c, in.ToolRef, "approve_tool", &in.Seen, a.permitted(approve, definition.approval))
	if err != nil {
		p := *problem.From(err)
		p.Message = "The tool counts as destructive from now on, but its definition is not approved: " + p.Message
		err = p.With("holds", "hint_overrides")
	}
	return v, err
}

// WithdrawTool takes the approval of a tool's definition back: the tool waits
// again, with the definition that was approved before it, if one was.
func (a *Admin) WithdrawTool(ctx context.Context, c Caller, in ToolDecision) (ToolView, error) {
	return a.decideTool(ctx, c, in.ToolRef, "withdraw_tool", nil, withdraw(in.Seen, trustIn(a.Config(), in.Server)))
}

// BlockTool refuses the definition of a tool that was seen, if it is still the one
// that the server lists. When it was approved it is not any more.
func (a *Admin) BlockTool(ctx context.Context, c Caller, in ToolDecision) (ToolView, error) {
	return a.decideTool(ctx, c, in.ToolRef, "block_tool", &in.Seen, block)
}

// UnblockTool ends the refusal of a tool's definition: it waits for a user again.
func UnblockTool(a *Admin, ctx context.Context, c Caller, in ToolDecision) (ToolView, error) {
	return a.decideTool(ctx, c, in.ToolRef, "unblock_tool", &in.Seen, unblock(trustIn(a.Config(), in.Server)))
}

// decideTool returns how the tool is then.
func (a *Admin) decideTool(ctx context.Context, c Caller, in ToolRef, action string, seen *Seen, decide decision) (ToolView, error) {
	id, detail := tool.ID(in), ""
	if seen != nil {
		detail = problem.Brief(seen.Fingerprint)
	}
	record := Action(c, activity.Approval, id, action, detail)
	err := a.decide(ctx, c, record, "The definition of '"+id.String()+"'", seen, func() (definition, error) { return a.findTool(id) }, decide)
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
	return toolDefinition(t, a.Book.View(id.Server)), nil
}

// DiffTool returns a tool's approved definition beside the one that its server
// lists.
func (a *Admin) DiffTool(ctx context.Context, _ Caller, in ToolRef) (ToolDiff, error) {
	d, err := a.findTool(tool.ID(in))
	if err != nil {
		return ToolDiff{}, err
	}
	of, err := a.compared(ctx, &d)
	return ToolDiff{
		Name: d.id().String(), Server: d.server, Tool: in.Tool, Status: d.status, Reason: d.waits.Why, Fingerprint: d.Fingerprint.String(),
		Compared: of, Loosened: d.waits.Loosened, Scanned: d.scanned(),
	}, err
}

// ApproveOffer approves the definition of a prompt, a resource, a template or
// of instructions that was seen, if it is still what the server has.
func (a *Admin) ApproveOffer(ctx context.Context, c Caller, in OfferDecision) (OfferDiff, error) {
	return a.decideOffer(ctx, c, in, "approve_", &in.Seen, a.permitted(approve, definition.approval))
}

// BlockOffer refuses it. When it was approved it is not any more.
func (a *Admin) BlockOffer(ctx context.Context, c Caller, in OfferDecision) (OfferDiff, error) {
	return a.decideOffer(ctx, c, in, "block_", &in.Seen, block)
}

// UnblockOffer ends its refusal: it waits for a user again.
func UnblockOffer(a *Admin, ctx context.Context, c Caller, in OfferDecision) (OfferDiff, error) {
	return a.decideOffer(ctx, c, in, "unblock_", &in.Seen, unblock(trustIn(a.Config(), in.Server)))
}

func (a *Admin) decideOffer(ctx context.Context, c Caller, in OfferDecision, action string, seen *Seen, decide decision) (OfferDiff, error) {
	detail := problem.Brief(in.Fingerprint)
	if in.Kind != tool.KindInstructions {
		detail = problem.Brief(in.Name) + " " + detail
	}
	record := Action(c, activity.Approval, tool.ID{Server: in.Server}, action+string(in.Kind), detail)
	err := a.decide(ctx, c, record, "The definition", seen, func() (definition, error) { return a.findOffer(in.OfferRef) }, decide)
	if err != nil {
		return OfferDiff{}, err
	}
	return a.DiffOffer(ctx, c, in.OfferRef)
}

// WithdrawOffer takes its approval back: it waits again.
func (a *Admin) WithdrawOffer(ctx context.Context, c Caller, in OfferDecision) (OfferDiff, error) {
	return a.decideOffer(ctx, c, in, "withdraw_", nil, withdraw(in.Seen, trustIn(a.Config(), in.Server)))
}

// findOffer returns an offer that is there to be approved, or NOT_FOUND.
func (a *Admin) findOffer(in OfferRef) (definition, error) {
	s, err := a.FindServer(in.Server)
	if err != nil {
		return definition{}, err
	}
	a.Offers.RefreshInstructions(context.Background(), s) // what it says of itself is known already
	if o := a.Catalog.Primitives(in.Server).Find(in.Kind, in.Name); o != nil {
		return a.offerDefinition(in.Server, o, a.Book.View(in.Server)), nil
	}
	if in.Kind == tool.KindInstructions {
		return definition{}, problem.Newf(problem.NotFound, "Server '%s' has no instructions.", in.Server).
			WithHint("See what waits with `mcpproxy approvals`.")
	}
	return definition{}, problem.Newf(problem.NotFound, "Server '%s' has no %s '%s', as far as is known.", in.Server, in.Kind.Label(), problem.Brief(in.Name)).
		WithHint("See what the server offers with `mcpproxy upstream review " + in.Server + "`.")
}

// DiffOffer returns the approved definition of a prompt, a resource, a template
// or of instructions beside the one that the server has now.
func (a *Admin) DiffOffer(ctx context.Context, _ Caller, in OfferRef) (OfferDiff, error) {
	d, err := a.findOffer(in)
	if err != nil {
		return OfferDiff{}, err
	}
	of, err := a.compared(ctx, &d)
	return OfferDiff{
		Kind: d.Kind, Server: d.server, Name: d.Tool, Status: d.status, Reason: d.waits.Why, Fingerprint: d.Fingerprint.String(),
		Compared: of, Scanned: d.scanned(),
	}, err
}
