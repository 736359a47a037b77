package approval

import (
	"cmp"
	"context"
	"encoding/json"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/problem"
)

// Approve approves definitions of a server for a user, together with a launch if given. Other definitions
// that a user refused stay refused.
func (b *Book) Approve(ctx context.Context, server, by string, all []CandidateDefinition, launch *tool.Fingerprint) error {
	return b.changeAndNotify(ctx, DecisionEvent{Server: server}, func(s *bookState) (ChangeSet, error) {
		m := AuthorAndTime{by, b.now()}
		v := s.serverView(server)
		c := ChangeSet{Server: server}
		for _, candidate := range all {
			e := v.DecisionsOn(candidate.Kind, candidate.Tool)
			pin := candidate.newPin(m)
			pin.Before = e.replacedDecision(candidate.Fingerprint)
			e.Pin, e.Was, e.Unsigned, e.Baseline = pin, nil, nil, nil
			if e.Block != nil && e.Block.appliesTo(candidate.Fingerprint) {
				e.Block = nil
			}
			c.Tools = append(c.Tools, candidate.newDecisionRow(e))
		}
		if launch != nil {
			c.Launch = &ApprovedLaunch{server, *launch, m}
		}
		return c, v.checkLimit(c)
	})
}

// Block refuses a definition for a user. If it was approved, the approval ends and stays as the baseline.
func (b *Book) Block(ctx context.Context, kind tool.DefinitionKind, id tool.ID, f tool.Fingerprint, by string) error {
	return b.changeDecisionsOn(ctx, kind, id, func(e *DefinitionDecisions) {
		e.Block = &Block{f, AuthorAndTime{by, b.now()}}
		e.endRefusedApproval()
		if e.Baseline != nil && !e.Block.Overrides(e.Baseline) {
			e.Baseline = nil // this block does not override the approval
		}
		if e.Unsigned != nil && e.Block.Overrides(e.Unsigned) {
			e.Unsigned = nil
		}
	})
}

// replacedDecision returns the decision that an approval of the definition replaces; nil if there is none. A repeated
// approval keeps the Before of the first one.
func (e DefinitionDecisions) replacedDecision(f tool.Fingerprint) *ReplacedDecision {
	switch {
	case e.Approves(f):
		return e.Pin.Before
	case e.Pin == nil && e.Block == nil:
		return nil
	}
	was := &ReplacedDecision{Block: e.Block}
	if last := cmp.Or(e.Pin, e.Baseline); last != nil {
		pin := *last
		pin.Before = nil
		was.Pin = &pin
	}
	return was
}

// previousDecisions returns the decisions before the approval. A later refusal is kept.
func (e DefinitionDecisions) previousDecisions() DefinitionDecisions {
	was := e.Pin.Before
	if e.Pin = nil; was == nil {
		return DefinitionDecisions{}
	}
	e.restoreReplaced(*was)
	if e.Pin == nil && e.Block == nil {
		return DefinitionDecisions{}
	}
	return e
}

// restoreReplaced restores the decision that an approval replaced. A later refusal is kept.
func (e *DefinitionDecisions) restoreReplaced(was ReplacedDecision) {
	if e.Pin = was.Pin; was.Pin != nil && was.Block != nil && was.Block.Overrides(was.Pin) {
		e.Pin, e.Baseline = nil, was.Pin
	}
	if e.Block == nil {
		e.Block = was.Block
	}
	e.endRefusedApproval()
}

// UndoApproval withdraws an approval for a user, and restores the decision that it replaced. If there was none, or
// the server's trust setting would accept the current definition, the tool waits until a user approves it. The error
// is CONFLICT if this definition is not the approved one.
func (b *Book) UndoApproval(ctx context.Context, listed CandidateDefinition, id tool.ID, f tool.Fingerprint, trust Trust, by string) error {
	return b.changeAndNotify(ctx, DecisionEvent{Server: id.Server}, func(s *bookState) (ChangeSet, error) {
		e := s.serverView(id.Server).DecisionsOn(listed.Kind, id.Tool)
		switch {
		case e.Pin == nil:
			return ChangeSet{}, problem.New(problem.Conflict, "It has no approved definition, so there is nothing to revoke.", "Review it again, then decide.")
		case e.Pin.Fingerprint != f:
			return ChangeSet{}, problem.New(problem.Conflict, "The approved definition is not the given one.", "Review it again, then decide.").
				With("fingerprint", e.Pin.Fingerprint.String())
		}
		if back := e.previousDecisions(); back.HasDecision() && !Evaluate(EvaluationRules{Trust: trust, UnknownIsNew: true}, back, listed).Accepted {
			return ChangeSet{Server: id.Server, Tools: []DecisionRow{{Kind: listed.Kind, Tool: id.Tool, DefinitionDecisions: back}}}, nil
		}
		return ChangeSet{Server: id.Server, Tools: []DecisionRow{newHeldRow(e, listed, AuthorAndTime{by, b.now()})}}, nil
	})
}

// Unblock ends the refusal of a listed definition for a user. The definition then waits again. The tool waits until a
// user approves it, unless an earlier definition is approved. It is compared with the last approved definition. The
// error is CONFLICT if the definition is not refused.
func (b *Book) Unblock(ctx context.Context, listed CandidateDefinition, id tool.ID, trust Trust, by string) error {
	return b.changeAndNotify(ctx, DecisionEvent{Server: id.Server}, func(s *bookState) (ChangeSet, error) {
		e := s.serverView(id.Server).DecisionsOn(listed.Kind, id.Tool)
		if e.Block == nil || e.Block.Fingerprint != listed.Fingerprint {
			return ChangeSet{}, problem.New(problem.Conflict, "This definition is not blocked, so there is nothing to unblock.", "Review it again, then decide.")
		}
		e.Block = nil
		row := DecisionRow{Kind: listed.Kind, Tool: id.Tool, DefinitionDecisions: e}
		if e.Pin == nil || Evaluate(EvaluationRules{Trust: trust, UnknownIsNew: true}, e, listed).Accepted {
			base := e.baselineOf(listed.Fingerprint)
			row = newHeldRow(e, listed, AuthorAndTime{by, b.now()})
			row.keepBaseline(base)
		}
		return ChangeSet{Server: id.Server, Tools: []DecisionRow{row}}, nil
	})
}

// keepBaseline keeps an approval as the baseline of a row that waits. It makes the block no earlier than the
// approval, even if the clock was set back, so that the approval does not become valid again.
func (r *DecisionRow) keepBaseline(p *Pin) {
	if p == nil {
		return
	}
	block := *r.Block
	if block.At.Before(p.At) {
		block.At = p.At
	}
	r.Block, r.Pin = &block, p
	r.endRefusedApproval()
}

// SwitchTool switches a tool on or off for a user.
func (b *Book) SwitchTool(ctx context.Context, id tool.ID, on bool, by string) error {
	return b.changeDecisionsOn(ctx, tool.KindTool, id, func(e *DefinitionDecisions) {
		e.Off = nil
		if !on {
			e.Off = &AuthorAndTime{by, b.now()}
		}
	})
}

func (b *Book) changeDecisionsOn(ctx context.Context, kind tool.DefinitionKind, id tool.ID, edit func(*DefinitionDecisions)) error {
	return b.changeAndNotify(ctx, DecisionEvent{Server: id.Server}, func(s *bookState) (ChangeSet, error) {
		v := s.serverView(id.Server)
		e := v.DecisionsOn(kind, id.Tool)
		edit(&e)
		c := ChangeSet{Server: id.Server, Tools: []DecisionRow{{Kind: kind, Tool: id.Tool, DefinitionDecisions: e}}}
		return c, v.checkLimit(c)
	})
}

// ApproveLaunch approves the launch of a server for a user, and removes a proposal with this name.
func (b *Book) ApproveLaunch(ctx context.Context, server string, f tool.Fingerprint, by string) error {
	return b.changeAndNotify(ctx, DecisionEvent{Server: server, Relaunched: true}, func(*bookState) (ChangeSet, error) {
		return ChangeSet{Server: server, Launch: &ApprovedLaunch{server, f, AuthorAndTime{by, b.now()}}, RemoveProposal: server}, nil
	})
}

// RevokeLaunch puts the launch of a server under review again.
func (b *Book) RevokeLaunch(ctx context.Context, server string) error {
	return b.changeAndNotify(ctx, DecisionEvent{Server: server}, func(*bookState) (ChangeSet, error) { return ChangeSet{Server: server, RevokeLaunch: true}, nil })
}

// ForgetServer deletes everything about a server, including a proposal.
func (b *Book) ForgetServer(ctx context.Context, server string) error {
	return b.changeAndNotify(ctx, DecisionEvent{Server: server}, func(*bookState) (ChangeSet, error) {
		return ChangeSet{Server: server, Forget: true, RemoveProposal: server}, nil
	})
}

// TooManyProposalsProblem returns the problem when MaxProposals is reached.
func TooManyProposalsProblem() error {
	return problem.Newf(problem.Overloaded, "%d proposed servers already wait for approval.", MaxProposals).
		WithHint("Ask the user to review them with `mcpproxy approvals`.")
}

// WithdrawProposal removes a proposal.
func (b *Book) WithdrawProposal(ctx context.Context, name string) error {
	return b.applyChange(ctx, func(*bookState) (ChangeSet, error) { return ChangeSet{RemoveProposal: name}, nil })
}

// ProposeServer stores a server that an agent proposes. The name must be new, and fits must accept it among the
// existing proposals.
func (b *Book) ProposeServer(ctx context.Context, name string, server json.RawMessage, by string, fits func([]ServerProposal) error) error {
	return b.applyChange(ctx, func(s *bookState) (ChangeSet, error) {
		if err := fits(s.proposals); err != nil {
			return ChangeSet{}, err
		}
		if len(s.proposals) >= MaxProposals {
			return ChangeSet{}, TooManyProposalsProblem()
		}
		if _, there := b.FindProposal(name); there {
			return ChangeSet{}, problem.Newf(problem.Conflict, "A server named '%s' was already proposed.", name).
				WithHint("Ask the user to approve it, or choose another name.")
		}
		return ChangeSet{Propose: &ServerProposal{name, server, AuthorAndTime{by, b.now()}}}, nil
	})
}
