package approval

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/presence"
	"mcpproxy/internal/problem"
)

// The bounds of the book.
const (
	// MaxTools is of how many tools of one server it keeps something, and of how
	// many offers: those that are gone, too, since they may come back.
	MaxTools = 50_000
	// MaxProposals is how many servers wait as proposals.
	MaxProposals = 50
)

// ErrStale is that somebody else has decided something since the decisions were loaded:
// they have to be loaded again before anything is decided by them.
var ErrStale = errors.New("something else was decided meanwhile")

// Store stores the decisions. SaveApprovals stores a change wholly or not at
// all; RestoreApprovals makes the store have what is given and nothing else, but
// that definitions which are not given stay.
type Store interface {
	LoadApprovals(ctx context.Context) (Saved, error)
	SaveApprovals(ctx context.Context, c Change) error
	RestoreApprovals(ctx context.Context, s Saved) error
	ApprovedDefinition(ctx context.Context, kind tool.Kind, id tool.ID) (json.RawMessage, error)
	// SaveHeld stores since when definitions of a server wait. Nothing depends on it.
	SaveHeld(ctx context.Context, server string, all []Held) error
}

// Book is the decisions in memory. It is safe for concurrent use.
type Book struct {
	keeper Store
	gate   *presence.Gate
	now    func() time.Time
	state  atomic.Pointer[state] // nil until loaded
	loaded chan struct{}         // closed then
	// looking has a place for each definition that is being scanned.
	looking chan struct{}
	holds   holds

	mu        sync.Mutex // held while a decision is stored, so that they take effect in that order; guards what follows
	followers []func(Decided)
}

// Decided is what those who follow the book are told: what is decided about a
// server is another thing than before.
type Decided struct {
	Server string // "": of every server, it was unknown until now
	// Anew reports whether a launch was approved: what the server has listed until now
	// was listed by another one.
	Anew bool
}

// Follow has f told of every decision from now on that is not the follower's own:
// those of persons, and what was read. f is called when the decision is in force,
// after those who follow already and before the decision returns, perhaps at the
// same time for two decisions: it looks at what is in force then.
func (b *Book) Follow(f func(Decided)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.followers = append(b.followers, f)
}

// publish tells the followers. mu is not held: they may wait for others who decide.
func (b *Book) publish(d Decided) {
	b.mu.Lock()
	followers := b.followers
	b.mu.Unlock()
	for _, f := range followers {
		f(d)
	}
}

// NewBook makes a book that knows nothing until Load. The gate says which approvals count;
// nil is all.
func NewBook(keeper Store, gate *presence.Gate) *Book {
	return &Book{keeper: keeper, gate: gate, now: time.Now, loaded: make(chan struct{}), looking: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// Loaded is closed when the decisions are known.
func (b *Book) Loaded() <-chan struct{} { return b.loaded }

// Load reads what was stored. Until it has succeeded nothing is known.
func (b *Book) Load(ctx context.Context) error {
	read, err := b.read(ctx)
	if read {
		b.publish(Decided{})
	}
	return err
}

// read is Load without telling. It reports whether it has read something.
func (b *Book) read(ctx context.Context) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state.Load() != nil {
		return false, nil
	}
	if _, err := b.load(ctx); err != nil {
		return false, err
	}
	close(b.loaded)
	return true, nil
}

// Reload reads what was stored once more, since another instance has decided something, and
// tells the followers of it.
func (b *Book) Reload(ctx context.Context, decided ...Decided) error {
	read, err := b.read(ctx)
	if err == nil && !read {
		b.mu.Lock()
		_, err = b.load(ctx)
		b.mu.Unlock()
	}
	if err != nil {
		return err
	}
	for _, d := range decided {
		b.publish(d)
	}
	return nil
}

// load reads what was stored. mu is held.
func (b *Book) load(ctx context.Context) (*state, error) {
	saved, err := b.keeper.LoadApprovals(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the approvals: %w", err)
	}
	if err := b.gate.Ready(ctx); err != nil {
		return nil, fmt.Errorf("read what was signed: %w", err)
	}
	s := &state{servers: map[string]*View{}, proposals: saved.Proposals, lost: saved.Lost, gaps: saved.RestrictionsLost}
	for server, rows := range saved.Tools {
		for i := range rows {
			b.weigh(server, &rows[i])
		}
		s.servers[server] = (&View{}).with(Change{Tools: rows})
	}
	for server, f := range saved.Reviewed {
		v := *s.view(server)
		v.reviewed = &f
		s.servers[server] = &v
	}
	for _, l := range saved.Launches {
		if b.gate.Confirmed(l.claim()) {
			s.servers[l.Server] = s.view(l.Server).with(Change{Launch: &l})
			continue
		}
		v := *s.view(l.Server)
		v.unsigned, v.reviewed = &l, &tool.Fingerprint{} // no launch has this one: it is reviewed anew
		s.servers[l.Server] = &v
	}
	b.holds.load(saved.Held)
	b.state.Store(s)
	return s, nil
}

// Restore stores all that is known once more: the store has failed meanwhile, and
// may be another one. Approved definitions are asked for, since they are not kept
// here; nil leaves the one that is stored.
func (b *Book) Restore(ctx context.Context, definition func(tool.Kind, tool.ID, tool.Fingerprint) json.RawMessage) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state.Load()
	if s == nil {
		return nil // it is still to be read
	}
	saved := Saved{
		Tools: map[string][]Row{}, Reviewed: map[string]tool.Fingerprint{}, Proposals: s.proposals,
		Held: b.holds.saved(), Lost: s.lost, RestrictionsLost: s.gaps,
	}
	for server, v := range s.servers {
		rows := v.rows()
		for i := range rows {
			row := &rows[i]
			if row.store(); row.Pin != nil {
				rows[i].Definition = definition(row.Kind, tool.ID{Server: server, Tool: row.Tool}, row.Pin.Fingerprint)
			}
		}
		if len(rows) > 0 {
			saved.Tools[server] = rows
		}
		if l := cmp.Or(v.launch, v.unsigned); l != nil {
			saved.Launches = append(saved.Launches, *l)
		}
		if v.reviewed != nil && v.unsigned == nil {
			saved.Reviewed[server] = *v.reviewed
		}
	}
	if err := b.keeper.RestoreApprovals(ctx, saved); err != nil {
		return fmt.Errorf("store the approvals again: %w", err)
	}
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

// Since returns since when a definition that waits does so: it was held first, was
// refused, or its approval was taken back. The zero time is that this is not known.
func (b *Book) Since(server string, c Candidate) time.Time {
	since := b.holds.since(server, c)
	if block := b.View(server).Of(c.Kind, c.Tool).Block; block != nil && block.refuses(c.Fingerprint) && block.At.After(since) {
		since = block.At
	}
	return since
}

// Lost reports whether there were approvals which could not be read any more, so that
// the tools of servers that no person has approved since wait.
func (b *Book) Lost() bool { return b.known().lost }

// RestrictionsLost reports whether refusals and switches may be among what was
// lost. Then nothing is accepted at first sight any more.
func (b *Book) RestrictionsLost() bool { return b.known().gaps }

// Proposals are the servers that agents propose, the oldest first.
func (b *Book) Proposals() []Proposal { return slices.Clone(b.known().proposals) }

// known is everything that is known: nothing until it was read.
func (b *Book) known() *state {
	if s := b.state.Load(); s != nil {
		return s
	}
	return &state{}
}

// Proposal is the proposal of that name.
func (b *Book) Proposal(name string) (Proposal, bool) {
	all := b.known().proposals
	if i := slices.IndexFunc(all, func(p Proposal) bool { return p.Name == name }); i >= 0 {
		return all[i], true
	}
	return Proposal{}, false
}

// Proposed reports whether there is a proposal of that name.
func (b *Book) Proposed(name string) bool {
	_, ok := b.Proposal(name)
	return ok
}

// Definition returns the approved definition of a tool or an offer, nil when
// none is approved.
func (b *Book) Definition(ctx context.Context, kind tool.Kind, id tool.ID) (json.RawMessage, error) {
	if b.View(id.Server).Of(kind, id.Tool).Pin == nil {
		return nil, nil
	}
	raw, err := b.keeper.ApprovedDefinition(ctx, kind, id)
	if err != nil {
		return nil, fmt.Errorf("read the approved definition of %s: %w", id, err)
	}
	return raw, nil
}

// checkLimit refuses a change that would keep more tools or offers of a server
// than is allowed.
func (v *View) checkLimit(c Change) error {
	tools, offers := v.count(c.Tools)
	if max(tools, offers) > MaxTools {
		return problem.Newf(problem.TooLarge, "Decisions about %d tools or offers of server '%s' are kept, which is the most.", MaxTools, c.Server).
			WithHint("Remove the server and add it anew to forget them.")
	}
	return nil
}

// rest adds to rows what else is decided about tools and offers. A launch that
// is stored makes its server one that is known; the store may be another one
// than when the rest was decided.
func (v *View) rest(rows []Row) []Row {
	given := make(map[named]bool, len(rows))
	for _, row := range rows {
		given[named{row.Kind, row.Tool}] = true
	}
	for _, row := range v.rows() {
		if !given[named{row.Kind, row.Tool}] && row.Decided() {
			rows = append(rows, row)
		}
	}
	return rows
}

// decide is change for a person's decision, of which the followers are told.
func (b *Book) decide(ctx context.Context, d Decided, decide func(*state) (Change, error)) error {
	err := b.change(ctx, decide)
	if err == nil {
		b.publish(d)
	}
	return err
}

// change stores what decide returns and lets it take effect.
func (b *Book) change(ctx context.Context, decide func(*state) (Change, error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state.Load()
	if s == nil {
		return problem.New(problem.AuditUnavailable, "The approvals cannot be read yet, so nothing can be decided.",
			"Try again in a moment; if it stays so, see `mcpproxy status` and the log of the daemon.")
	}
	c, s, err := b.save(ctx, s, decide)
	if err != nil || c.empty() {
		return err
	}
	if c.Forget {
		b.holds.forget(c.Server)
	}
	b.state.Store(s.with(c))
	return nil
}

// staleTries is how often something is decided anew, since another instance was faster.
const staleTries = 10

// save stores what decide returns, and returns it with what it was decided by.
func (b *Book) save(ctx context.Context, s *state, decide func(*state) (Change, error)) (Change, *state, error) {
	for try := 0; ; try++ {
		c, err := decide(s)
		if err != nil || c.empty() {
			return c, s, err
		}
		if c.Launch != nil {
			c.Tools = s.view(c.Server).rest(c.Tools)
		}
		stored := c
		stored.Tools = slices.Clone(c.Tools)
		for i := range stored.Tools {
			stored.Tools[i].store()
		}
		if err = b.keeper.SaveApprovals(ctx, stored); err == nil {
			return c, s, nil
		}
		if errors.Is(err, ErrStale) && try < staleTries {
			if s, err = b.load(ctx); err == nil {
				continue
			}
		}
		return c, s, problem.New(problem.AuditUnavailable, "The decision cannot be stored, so it does not take effect.",
			"Make room on the disk of the data directory, or see the log of the daemon, and try again.").Because(err)
	}
}

func (c *Change) empty() bool { return c.Server == "" && c.Propose == nil && c.Settle == "" }
