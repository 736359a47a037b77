package approval

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/problem"
)

// Approve approves definitions of a server for a user, together with a launch if given. Other definitions
// that a user refused stay refused.
func (b *Book) Approve(ctx context.Context, server, by string, all []Candidate, launch *tool.Fingerprint) error {
	return b.decide(ctx, Decided{Server: server}, func(s *state) (Change, error) {
		m := Mark{by, b.now()}
		v := s.view(server)
		c := Change{Server: server}
		for _, candidate := range all {
			e := v.Of(candidate.Kind, candidate.Tool)
			pin := candidate.pin(m)
			pin.Before = e.before(candidate.Fingerprint)
			e.Pin, e.Was, e.Unsigned = pin, nil, nil
			if e.Block != nil && e.Block.refuses(candidate.Fingerprint) {
				e.Block = nil
			}
			c.Tools = append(c.Tools, candidate.row(e))
		}
		if launch != nil {
			c.Launch = &Launch{server, *launch, m}
		}
		return c, v.checkLimit(c)
	})
}

// Block refuses a definition for a user. If it was approved, the approval ends.
func (b *Book) Block(ctx context.Context, kind tool.DefinitionKind, id tool.ID, f tool.Fingerprint, by string) error {
	return b.changeOne(ctx, kind, id, func(e *Entry) {
		e.Block = &Block{f, Mark{by, b.now()}}
		if e.Approves(f) {
			e.Pin = nil
		}
		if e.Unsigned != nil && e.Block.Overrides(e.Unsigned) {
			e.Unsigned = nil
		}
	})
}

// before returns what an approval of the definition replaces; nil if nothing. A repeated approval keeps
// the Before of the first.
func (e Entry) before(f tool.Fingerprint) *Before {
	switch {
	case e.Approves(f):
		return e.Pin.Before
	case e.Pin == nil && e.Block == nil:
		return nil
	}
	was := &Before{Block: e.Block}
	if e.Pin != nil {
		pin := *e.Pin
		pin.Before = nil
		was.Pin = &pin
	}
	return was
}

// goBack returns the entry from before the approval. A later refusal stays.
func (e Entry) goBack() Entry {
	was := e.Pin.Before
	if e.Pin = nil; was == nil {
		return Entry{}
	}
	if e.Block == nil {
		e.Block = was.Block
	}
	if was.Pin != nil && (e.Block == nil || !e.Block.Overrides(was.Pin)) {
		e.Pin = was.Pin
	}
	if e.Pin == nil && e.Block == nil {
		return Entry{}
	}
	return e
}

// TakeBack takes an approval back for a user, and restores the decision that it replaced. If there was
// none, or the trust in the server would accept the current definition, the tool waits until a user
// approves it. The error is CONFLICT if this definition is not the approved one.
func (b *Book) TakeBack(ctx context.Context, listed Candidate, id tool.ID, f tool.Fingerprint, trust Trust, by string) error {
	return b.decide(ctx, Decided{Server: id.Server}, func(s *state) (Change, error) {
		e := s.view(id.Server).Of(listed.Kind, id.Tool)
		switch {
		case e.Pin == nil:
			return Change{}, problem.New(problem.Conflict, "No definition of it is approved, so there is nothing to take back.", "Look at it again, then decide.")
		case e.Pin.Fingerprint != f:
			return Change{}, problem.New(problem.Conflict, "Another definition is approved than the one that you name.", "Look at it again, then decide.").
				With("fingerprint", e.Pin.Fingerprint.String())
		}
		if back := e.goBack(); back.Decided() && !Evaluate(Rules{Trust: trust, Acquainted: true}, back, listed).Accepted {
			return Change{Server: id.Server, Tools: []Row{{Kind: listed.Kind, Tool: id.Tool, Entry: back}}}, nil
		}
		return Change{Server: id.Server, Tools: []Row{doubt(e, listed, Mark{by, b.now()})}}, nil
	})
}

// Unblock ends the refusal of a definition for a user: it waits again. The tool waits until a user
// approves it, unless an earlier definition is approved. The error is CONFLICT if it is not refused.
func (b *Book) Unblock(ctx context.Context, kind tool.DefinitionKind, id tool.ID, f tool.Fingerprint, trust Trust, by string) error {
	return b.decide(ctx, Decided{Server: id.Server}, func(s *state) (Change, error) {
		e := s.view(id.Server).Of(kind, id.Tool)
		if e.Block == nil || e.Block.Fingerprint != f {
			return Change{}, problem.New(problem.Conflict, "This definition is not blocked, so there is nothing to unblock.", "Look at it again, then decide.")
		}
		e.Block = nil
		row := Row{Kind: kind, Tool: id.Tool, Entry: e}
		if e.Pin == nil || trust == Auto {
			row = doubt(e, Candidate{Kind: kind, Tool: id.Tool}, Mark{by, b.now()})
		}
		return Change{Server: id.Server, Tools: []Row{row}}, nil
	})
}

// Switch switches a tool on or off for a user.
func (b *Book) Switch(ctx context.Context, id tool.ID, on bool, by string) error {
	return b.changeOne(ctx, tool.KindTool, id, func(e *Entry) {
		e.Off = nil
		if !on {
			e.Off = &Mark{by, b.now()}
		}
	})
}

func (b *Book) changeOne(ctx context.Context, kind tool.DefinitionKind, id tool.ID, edit func(*Entry)) error {
	return b.decide(ctx, Decided{Server: id.Server}, func(s *state) (Change, error) {
		v := s.view(id.Server)
		e := v.Of(kind, id.Tool)
		edit(&e)
		c := Change{Server: id.Server, Tools: []Row{{Kind: kind, Tool: id.Tool, Entry: e}}}
		return c, v.checkLimit(c)
	})
}

// ApproveLaunch approves the launch of a server for a user, and removes a proposal with this name.
func (b *Book) ApproveLaunch(ctx context.Context, server string, f tool.Fingerprint, by string) error {
	return b.decide(ctx, Decided{Server: server, Relaunched: true}, func(*state) (Change, error) {
		return Change{Server: server, Launch: &Launch{server, f, Mark{by, b.now()}}, Settle: server}, nil
	})
}

// RevokeLaunch puts the launch of a server under review again.
func (b *Book) RevokeLaunch(ctx context.Context, server string) error {
	return b.decide(ctx, Decided{Server: server}, func(*state) (Change, error) { return Change{Server: server, Unpin: true}, nil })
}

// Forget deletes everything about a server, including a proposal.
func (b *Book) Forget(ctx context.Context, server string) error {
	return b.decide(ctx, Decided{Server: server}, func(*state) (Change, error) {
		return Change{Server: server, Forget: true, Settle: server}, nil
	})
}

// TooManyProposals is the problem at MaxProposals.
func TooManyProposals() error {
	return problem.Newf(problem.Overloaded, "%d proposed servers wait for a person already.", MaxProposals).
		WithHint("Ask the user to look at them with `mcpproxy approvals`.")
}

// Withdraw removes a proposal.
func (b *Book) Withdraw(ctx context.Context, name string) error {
	return b.change(ctx, func(*state) (Change, error) { return Change{Settle: name}, nil })
}

// Propose stores a server that an agent proposes. The name must be new, and fits must accept it among the
// existing proposals.
func (b *Book) Propose(ctx context.Context, name string, server json.RawMessage, by string, fits func([]Proposal) error) error {
	return b.change(ctx, func(s *state) (Change, error) {
		if err := fits(s.proposals); err != nil {
			return Change{}, err
		}
		if len(s.proposals) >= MaxProposals {
			return Change{}, TooManyProposals()
		}
		if _, there := b.Proposal(name); there {
			return Change{}, problem.Newf(problem.Conflict, "A server named '%s' is proposed already.", name).
				WithHint("Ask the user to approve it, or choose another name.")
		}
		return Change{Propose: &Proposal{name, server, Mark{by, b.now()}}}, nil
	})
}
