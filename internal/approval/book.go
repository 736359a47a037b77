package approval

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/tool"
)

// The bounds of the book.
const (
	// MaxTools is of how many tools of one server it keeps something: those that
	// are gone, too, since they may come back.
	MaxTools = 50_000
	// MaxProposals is how many servers wait as proposals.
	MaxProposals = 50
)

// Row is what is stored of a tool.
type Row struct {
	Tool string
	Entry
	// Definition is the approved one, nil when it is stored already.
	Definition json.RawMessage
}

// Change is what is stored at once.
type Change struct {
	Server  string // "" when it is about a proposal alone
	Forget  bool   // everything of the server, before the rest is stored
	Tools   []Row
	Launch  *Launch
	Unpin   bool // the launch is approved no more
	Propose *Proposal
	Settle  string // the proposal of this name is over
}

// Saved is everything that was stored. Definitions are left out.
type Saved struct {
	Tools     map[string][]Row // by server
	Launches  []Launch
	Proposals []Proposal
	// Lost says that an earlier store was damaged: there were approvals that are
	// not among these.
	Lost bool
}

// Keeper stores the decisions. SaveApprovals stores a change wholly or not at
// all.
type Keeper interface {
	LoadApprovals(ctx context.Context) (Saved, error)
	SaveApprovals(ctx context.Context, c Change) error
	ApprovedDefinition(ctx context.Context, id tool.ID) (json.RawMessage, error)
}

// Book is the decisions in memory. It is safe for concurrent use.
type Book struct {
	keeper Keeper
	now    func() time.Time
	state  atomic.Pointer[state] // nil until loaded
	loaded chan struct{}         // closed then
	// looking has a place for each definition that is being scanned.
	looking chan struct{}

	mu sync.Mutex // held while a decision is stored, so that they take effect in that order
}

// NewBook makes a book that knows nothing until Load.
func NewBook(keeper Keeper) *Book {
	return &Book{keeper: keeper, now: time.Now, loaded: make(chan struct{}), looking: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Loaded is closed when the decisions are known.
func (b *Book) Loaded() <-chan struct{} { return b.loaded }

// Load reads what was stored. Until it has succeeded nothing is known.
func (b *Book) Load(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state.Load() != nil {
		return nil
	}
	saved, err := b.keeper.LoadApprovals(ctx)
	if err != nil {
		return fmt.Errorf("read the approvals: %w", err)
	}
	s := &state{servers: map[string]*View{}, proposals: saved.Proposals, lost: saved.Lost}
	for server, rows := range saved.Tools {
		s.servers[server] = (&View{}).with(Change{Tools: rows})
	}
	for _, l := range saved.Launches {
		s.servers[l.Server] = s.view(l.Server).with(Change{Launch: &l})
	}
	b.state.Store(s)
	close(b.loaded)
	return nil
}

// View is what is decided about a server; nil when that is not known.
func (b *Book) View(server string) *View {
	s := b.state.Load()
	if s == nil {
		return nil
	}
	return s.view(server)
}

// Lost says that there were approvals which could not be read any more, so that
// the tools of servers that no person has approved since wait.
func (b *Book) Lost() bool {
	s := b.state.Load()
	return s != nil && s.lost
}

// Proposals are the servers that agents propose, the oldest first.
func (b *Book) Proposals() []Proposal {
	if s := b.state.Load(); s != nil {
		return slices.Clone(s.proposals)
	}
	return nil
}

// Proposal is the proposal of that name.
func (b *Book) Proposal(name string) (Proposal, bool) {
	for _, p := range b.Proposals() {
		if p.Name == name {
			return p, true
		}
	}
	return Proposal{}, false
}

// Definition is the approved definition of a tool, nil when none is approved.
func (b *Book) Definition(ctx context.Context, id tool.ID) (json.RawMessage, error) {
	if b.View(id.Server).Tool(id.Tool).Pin == nil {
		return nil, nil
	}
	raw, err := b.keeper.ApprovedDefinition(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("read the approved definition of %s: %w", id, err)
	}
	return raw, nil
}

// Admit judges what a server lists and accepts what its trust allows, all at
// once. When that cannot be stored nothing is accepted: the judgements then say
// that everything waits, beside the error.
func (b *Book) Admit(ctx context.Context, server string, r Rules, all []Candidate) ([]Judgement, error) {
	b.consult(server, r, all)
	judged := make([]Judgement, len(all))
	err := b.change(ctx, func(s *state) (Change, error) {
		v := s.view(server)
		r.Acquainted = s.acquainted(v)
		c := Change{Server: server}
		room := MaxTools - len(v.tools)
		for i, candidate := range all {
			e := v.Tool(candidate.Tool)
			judged[i] = Judge(r, e, candidate)
			if !judged[i].Accepted {
				continue
			}
			if e == (Entry{}) {
				if room--; room < 0 {
					judged[i] = Judgement{Tool: candidate.Tool, Why: New}
					continue
				}
			}
			e.Pin = candidate.pin(Mark{r.Trust.By(), b.now()})
			c.Tools = append(c.Tools, Row{candidate.Tool, e, candidate.Definition})
		}
		if len(c.Tools) == 0 {
			return Change{}, nil
		}
		return c, nil
	})
	if err != nil {
		withdraw(judged, all, b.View(server))
	}
	return judged, err
}

// acquainted says whether a tool of which nothing is known is new: after
// approvals were lost, only with servers that a person has approved since.
func (s *state) acquainted(v *View) bool { return !s.lost || v.launch != nil }

// withdraw makes what could not be stored wait.
func withdraw(judged []Judgement, all []Candidate, v *View) {
	for i, c := range all {
		judged[i] = Judge(Rules{}, v.Tool(c.Tool), c)
	}
}

// consult has the scanner look at what it will be asked about, before the lock
// is taken. However many servers list at once, no more definitions are looked
// at at a time than there are processors.
func (b *Book) consult(server string, r Rules, all []Candidate) {
	s := b.state.Load()
	if s == nil || r.Trust != Scan {
		return
	}
	v := s.view(server)
	r.Acquainted = s.acquainted(v)
	var looking sync.WaitGroup
	for part := range slices.Chunk(all, chunk) {
		b.looking <- struct{}{}
		looking.Go(func() {
			defer func() { <-b.looking }()
			for _, c := range part {
				Judge(r, v.Tool(c.Tool), c)
			}
		})
	}
	looking.Wait()
}

// chunk is how many definitions are looked at before the next are taken.
const chunk = 16

// Approve approves definitions of a server, in the name of a person. A launch
// that is given is approved with them. What a person refused of the same tools
// stays refused.
func (b *Book) Approve(ctx context.Context, server, by string, all []Candidate, launch *tool.Fingerprint) error {
	return b.change(ctx, func(s *state) (Change, error) {
		m := Mark{by, b.now()}
		v := s.view(server)
		c := Change{Server: server}
		for _, candidate := range all {
			e := v.Tool(candidate.Tool)
			e.Pin = candidate.pin(m)
			if e.Block != nil && e.Block.Fingerprint == candidate.Fingerprint {
				e.Block = nil
			}
			c.Tools = append(c.Tools, Row{candidate.Tool, e, candidate.Definition})
		}
		if launch != nil {
			c.Launch = &Launch{server, *launch, m}
		}
		return c, v.room(c)
	})
}

// Block refuses a definition, in the name of a person. When it was the approved
// one, none is approved any more.
func (b *Book) Block(ctx context.Context, id tool.ID, f tool.Fingerprint, by string) error {
	return b.changeTool(ctx, id, func(e *Entry) {
		e.Block = &Block{f, Mark{by, b.now()}}
		if e.Approves(f) {
			e.Pin = nil
		}
	})
}

// Switch switches a tool on or off, in the name of a person.
func (b *Book) Switch(ctx context.Context, id tool.ID, on bool, by string) error {
	return b.changeTool(ctx, id, func(e *Entry) {
		e.Off = nil
		if !on {
			e.Off = &Mark{by, b.now()}
		}
	})
}

func (b *Book) changeTool(ctx context.Context, id tool.ID, edit func(*Entry)) error {
	return b.change(ctx, func(s *state) (Change, error) {
		v := s.view(id.Server)
		e := v.Tool(id.Tool)
		edit(&e)
		c := Change{Server: id.Server, Tools: []Row{{Tool: id.Tool, Entry: e}}}
		return c, v.room(c)
	})
}

// ApproveLaunch approves how a server is launched, in the name of a person. A
// proposal of that name is over with it.
func (b *Book) ApproveLaunch(ctx context.Context, server string, f tool.Fingerprint, by string) error {
	return b.change(ctx, func(*state) (Change, error) {
		return Change{Server: server, Launch: &Launch{server, f, Mark{by, b.now()}}, Settle: server}, nil
	})
}

// RevokeLaunch makes the launch of a server wait for review again.
func (b *Book) RevokeLaunch(ctx context.Context, server string) error {
	return b.change(ctx, func(*state) (Change, error) { return Change{Server: server, Unpin: true}, nil })
}

// Forget forgets everything about a server, a proposal of that name too.
func (b *Book) Forget(ctx context.Context, server string) error {
	return b.change(ctx, func(*state) (Change, error) {
		return Change{Server: server, Forget: true, Settle: server}, nil
	})
}

// Propose keeps a server that an agent proposes. There is none of that name.
func (b *Book) Propose(ctx context.Context, name string, server json.RawMessage, by string) error {
	return b.change(ctx, func(s *state) (Change, error) {
		if len(s.proposals) >= MaxProposals {
			return Change{}, problem.Newf(problem.Overloaded, "%d proposed servers wait for a person already.", MaxProposals).
				WithHint("Ask the user to look at them with `mcpproxy approvals`.")
		}
		for _, p := range s.proposals {
			if p.Name == name {
				return Change{}, problem.Newf(problem.Conflict, "A server named '%s' is proposed already.", name).
					WithHint("Ask the user to approve it, or choose another name.")
			}
		}
		return Change{Propose: &Proposal{name, server, Mark{by, b.now()}}}, nil
	})
}

// room refuses a change that would keep more tools of a server than there is
// room for.
func (v *View) room(c Change) error {
	n := len(v.tools)
	for _, row := range c.Tools {
		if _, there := v.tools[row.Tool]; !there {
			n++
		}
	}
	if n > MaxTools {
		return problem.Newf(problem.TooLarge, "Decisions about %d tools of server '%s' are kept, which is the most.", MaxTools, c.Server).
			WithHint("Remove the server and add it anew to forget them.")
	}
	return nil
}

// rest adds to rows what else is decided about tools. A launch that is stored
// makes its server one that is known; the store may be another one than when
// the rest was decided.
func (v *View) rest(rows []Row) []Row {
	given := make(map[string]bool, len(rows))
	for _, row := range rows {
		given[row.Tool] = true
	}
	for name, e := range v.tools {
		if !given[name] {
			rows = append(rows, Row{Tool: name, Entry: e})
		}
	}
	return rows
}

// change stores what decide says and lets it take effect.
func (b *Book) change(ctx context.Context, decide func(*state) (Change, error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state.Load()
	if s == nil {
		return problem.New(problem.AuditUnavailable, "The approvals cannot be read yet, so nothing can be decided.",
			"Try again in a moment; if it stays so, see `mcpproxy status` and the log of the daemon.")
	}
	c, err := decide(s)
	if err != nil || c.empty() {
		return err
	}
	if c.Launch != nil {
		c.Tools = s.view(c.Server).rest(c.Tools)
	}
	if err := b.keeper.SaveApprovals(ctx, c); err != nil {
		return problem.New(problem.AuditUnavailable, "The decision cannot be stored, so it does not take effect.",
			"Make room on the disk of the data directory, or see the log of the daemon, and try again.").Because(err)
	}
	b.state.Store(s.with(c))
	return nil
}

func (c *Change) empty() bool { return c.Server == "" && c.Propose == nil && c.Settle == "" }
