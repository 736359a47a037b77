package approval

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/tool"
)

// Approve approves definitions of a server, in the name of a person. A launch
// that is given is approved with them. What a person refused of the same tools
// stays refused.
func (b *Book) Approve(ctx context.Context, server, by string, all []Candidate, launch *tool.Fingerprint) error {
	return b.decide(ctx, Decided{Server: server}, func(s *state) (Change, error) {
		m := Mark{by, b.now()}
		v := s.view(server)
		c := Change{Server: server}
		for _, candidate := range all {
			e := v.Of(candidate.Kind, candidate.Tool)
			e.Pin, e.Was, e.Unsigned = candidate.pin(m), nil, nil
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

// Block refuses a definition, in the name of a person. When it was the approved
// one, none is approved any more.
func (b *Book) Block(ctx context.Context, kind tool.Kind, id tool.ID, f tool.Fingerprint, by string) error {
	return b.changeOne(ctx, kind, id, func(e *Entry) {
		e.Block = &Block{f, Mark{by, b.now()}}
		if e.Approves(f) {
			e.Pin = nil
		}
		if e.Unsigned != nil && e.Block.Ends(e.Unsigned) {
			e.Unsigned = nil
		}
	})
}

// TakeBack takes the approval of a definition back, in the name of a person: it
// waits again, and nothing of the tool is accepted by itself until a person
// approves one. The error is CONFLICT when another definition is approved, or none.
func (b *Book) TakeBack(ctx context.Context, kind tool.Kind, id tool.ID, f tool.Fingerprint, by string) error {
	return b.decide(ctx, Decided{Server: id.Server}, func(s *state) (Change, error) {
		e := s.view(id.Server).Of(kind, id.Tool)
		switch {
		case e.Pin == nil:
			return Change{}, problem.New(problem.Conflict, "No definition of it is approved, so there is nothing to take back.", "Look at it again, then decide.")
		case e.Pin.Fingerprint != f:
			return Change{}, problem.New(problem.Conflict, "Another definition is approved than the one that you name.", "Look at it again, then decide.").
				With("fingerprint", e.Pin.Fingerprint.String())
		}
		return Change{Server: id.Server, Tools: []Row{doubt(e, Candidate{Kind: kind, Tool: id.Tool}, Mark{by, b.now()})}}, nil
	})
}

// Switch switches a tool on or off, in the name of a person.
func (b *Book) Switch(ctx context.Context, id tool.ID, on bool, by string) error {
	return b.changeOne(ctx, tool.KindTool, id, func(e *Entry) {
		e.Off = nil
		if !on {
			e.Off = &Mark{by, b.now()}
		}
	})
}

func (b *Book) changeOne(ctx context.Context, kind tool.Kind, id tool.ID, edit func(*Entry)) error {
	return b.decide(ctx, Decided{Server: id.Server}, func(s *state) (Change, error) {
		v := s.view(id.Server)
		e := v.Of(kind, id.Tool)
		edit(&e)
		c := Change{Server: id.Server, Tools: []Row{{Kind: kind, Tool: id.Tool, Entry: e}}}
		return c, v.checkLimit(c)
	})
}

// ApproveLaunch approves how a server is launched, in the name of a person. A
// proposal of that name is over with it.
func (b *Book) ApproveLaunch(ctx context.Context, server string, f tool.Fingerprint, by string) error {
	return b.decide(ctx, Decided{Server: server, Anew: true}, func(*state) (Change, error) {
		return Change{Server: server, Launch: &Launch{server, f, Mark{by, b.now()}}, Settle: server}, nil
	})
}

// RevokeLaunch makes the launch of a server wait for review again.
func (b *Book) RevokeLaunch(ctx context.Context, server string) error {
	return b.decide(ctx, Decided{Server: server}, func(*state) (Change, error) { return Change{Server: server, Unpin: true}, nil })
}

// Forget forgets everything about a server, a proposal of that name too.
func (b *Book) Forget(ctx context.Context, server string) error {
	return b.decide(ctx, Decided{Server: server}, func(*state) (Change, error) {
		return Change{Server: server, Forget: true, Settle: server}, nil
	})
}

// TooManyProposals is why nothing more can be proposed.
func TooManyProposals() error {
	return problem.Newf(problem.Overloaded, "%d proposed servers wait for a person already.", MaxProposals).
		WithHint("Ask the user to look at them with `mcpproxy approvals`.")
}

// Withdraw takes a proposal away.
func (b *Book) Withdraw(ctx context.Context, name string) error {
	return b.change(ctx, func(*state) (Change, error) { return Change{Settle: name}, nil })
}

// Propose keeps a server that an agent proposes. There is none of that name, and
// beside the proposals that there are it may be, which fits says.
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
