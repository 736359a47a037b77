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

// The limits of the book.
const (
	// MaxTools limits the stored tools of one server, and separately those of its prompts and resources. It includes
	// removed ones, which may return.
	MaxTools = 50_000
	// MaxProposals limits the open proposals.
	MaxProposals = 50
)

// ErrStale means that another instance has stored a decision since the last load. Reload before deciding.
var ErrStale = errors.New("another decision was made in the meantime")

// Store stores the decisions. SaveApprovals stores a change completely or not at all. ReplaceApprovals replaces
// everything stored, but keeps stored definitions that the argument does not contain.
type Store interface {
	LoadApprovals(ctx context.Context) (StoredDecisions, error)
	SaveApprovals(ctx context.Context, c ChangeSet) error
	ReplaceApprovals(ctx context.Context, s StoredDecisions) error
	ApprovedDefinition(ctx context.Context, kind tool.DefinitionKind, id tool.ID) (json.RawMessage, error)
	// SaveHeld stores the times since when definitions of a server wait. No decision depends on them.
	SaveHeld(ctx context.Context, server string, all []HeldDefinition) error
}

// Book stores the decisions in memory. It is safe for concurrent use.
type Book struct {
	store  Store
	gate   *presence.Gate
	now    func() time.Time
	state  atomic.Pointer[bookState] // nil until loaded
	loaded chan struct{}             // closed when loaded
	// scans limits concurrent scans.
	scans chan struct{}
	holds heldTimes

	mu        sync.Mutex // held while a decision is stored, to keep their order; guards the following fields
	followers []func(DecisionEvent)
}

// DecisionEvent notifies followers that the decisions about a server have changed.
type DecisionEvent struct {
	Server string // "" means all servers, for example after the first load
	// Relaunched reports whether a launch was approved. The earlier tool lists then came from another program.
	Relaunched bool
}

// Subscribe makes the book call f after every decision of a user and after every load, but not for the follower's own
// decisions. The functions run in the order of the Subscribe calls, after the decision took effect and before the
// deciding call returns. f may run concurrently, and reads the current state.
func (b *Book) Subscribe(f func(DecisionEvent)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.followers = append(b.followers, f)
}

// notifyFollowers notifies the followers. The caller must not hold mu, because followers may wait for other
// decisions.
func (b *Book) notifyFollowers(d DecisionEvent) {
	b.mu.Lock()
	followers := b.followers
	b.mu.Unlock()
	for _, f := range followers {
		f(d)
	}
}

// NewBook returns an empty book; see Load. The gate determines which approvals are valid; nil means all.
func NewBook(keeper Store, gate *presence.Gate) *Book {
	return &Book{store: keeper, gate: gate, now: time.Now, loaded: make(chan struct{}), scans: make(chan struct{}, runtime.GOMAXPROCS(0))}
}

// LoadedChan returns a channel that is closed when the decisions are loaded.
func (b *Book) LoadedChan() <-chan struct{} { return b.loaded }

// Load reads the stored decisions.
func (b *Book) Load(ctx context.Context) error {
	read, err := b.loadIfNeeded(ctx)
	if read {
		b.notifyFollowers(DecisionEvent{})
	}
	return err
}

// loadIfNeeded is Load without the notification. It reports whether it loaded the decisions.
func (b *Book) loadIfNeeded(ctx context.Context) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.state.Load() != nil {
		return false, nil
	}
	if _, err := b.readStore(ctx); err != nil {
		return false, err
	}
	close(b.loaded)
	return true, nil
}

// Reload reads the decisions again, because another instance has changed some, and notifies the followers.
func (b *Book) Reload(ctx context.Context, decided ...DecisionEvent) error {
	read, err := b.loadIfNeeded(ctx)
	if err == nil && !read {
		b.mu.Lock()
		_, err = b.readStore(ctx)
		b.mu.Unlock()
	}
	if err != nil {
		return err
	}
	for _, d := range decided {
		b.notifyFollowers(d)
	}
	return nil
}

// readStore reads the stored decisions. The caller holds mu.
func (b *Book) readStore(ctx context.Context) (*bookState, error) {
	saved, err := b.store.LoadApprovals(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the approvals: %w", err)
	}
	if err := b.gate.EnsureLoaded(ctx); err != nil {
		return nil, fmt.Errorf("read the signed decisions: %w", err)
	}
	s := &bookState{servers: map[string]*ServerView{}, proposals: saved.Proposals, lost: saved.Lost, restrictionsLost: saved.RestrictionsLost}
	for server, rows := range saved.Tools {
		for i := range rows {
			b.setAsideUnsigned(server, &rows[i])
		}
		s.servers[server] = (&ServerView{}).withChange(ChangeSet{Tools: rows})
	}
	for server, f := range saved.Reviewed {
		v := *s.serverView(server)
		v.reviewed = &f
		s.servers[server] = &v
	}
	for _, l := range saved.Launches {
		if b.gate.IsConfirmed(l.toClaim()) {
			s.servers[l.Server] = s.serverView(l.Server).withChange(ChangeSet{Launch: &l})
			continue
		}
		v := *s.serverView(l.Server)
		v.unsigned, v.reviewed = &l, &tool.Fingerprint{} // no launch has this fingerprint, so the server is reviewed again
		s.servers[l.Server] = &v
	}
	b.holds.setAll(saved.Held)
	b.state.Store(s)
	return s, nil
}

// RewriteStore writes everything to the store again, after a failure or into a new store. definition returns an
// approved definition, because these are not kept in memory; if it returns nil, the stored one is kept.
func (b *Book) RewriteStore(ctx context.Context, definition func(tool.DefinitionKind, tool.ID, tool.Fingerprint) json.RawMessage) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state.Load()
	if s == nil {
		return nil // not loaded yet
	}
	saved := StoredDecisions{
		Tools: map[string][]DecisionRow{}, Reviewed: map[string]tool.Fingerprint{}, Proposals: s.proposals,
		Held: b.holds.copyAll(), Lost: s.lost, RestrictionsLost: s.restrictionsLost,
	}
	for server, v := range s.servers {
		rows := v.toRows()
		for i := range rows {
			row := &rows[i]
			if row.toStoredForm(); row.Pin != nil {
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
	if err := b.store.ReplaceApprovals(ctx, saved); err != nil {
		return fmt.Errorf("store the approvals again: %w", err)
	}
	return nil
}

// ServerView returns the decisions about a server; nil if unknown.
func (b *Book) ServerView(server string) *ServerView {
	s := b.state.Load()
	if s == nil {
		return nil
	}
	return s.serverView(server)
}

// HeldSince returns the time since when a definition waits: when it was first held or refused, or when its approval
// was withdrawn. The zero time means unknown.
func (b *Book) HeldSince(server string, c CandidateDefinition) time.Time {
	since := b.holds.heldSince(server, c)
	if block := b.ServerView(server).DecisionsOn(c.Kind, c.Tool).Block; block != nil && block.appliesTo(c.Fingerprint) && block.At.After(since) {
		since = block.At
	}
	return since
}

// ApprovalsLost reports whether approvals were lost. The tools of servers that no user has approved since then must
// wait.
func (b *Book) ApprovalsLost() bool { return b.currentState().lost }

// RestrictionsLost reports whether blocks and switched-off tools may be lost. In that case nothing is accepted
// automatically.
func (b *Book) RestrictionsLost() bool { return b.currentState().restrictionsLost }

// ProposedServers returns the proposed servers, oldest first.
func (b *Book) ProposedServers() []ServerProposal { return slices.Clone(b.currentState().proposals) }

// currentState returns the current state. It is empty before Load.
func (b *Book) currentState() *bookState {
	if s := b.state.Load(); s != nil {
		return s
	}
	return &bookState{}
}

// FindProposal returns the proposal with this name.
func (b *Book) FindProposal(name string) (ServerProposal, bool) {
	all := b.currentState().proposals
	if i := slices.IndexFunc(all, func(p ServerProposal) bool { return p.Name == name }); i >= 0 {
		return all[i], true
	}
	return ServerProposal{}, false
}

// IsProposed reports whether there is a proposal with this name.
func (b *Book) IsProposed(name string) bool {
	_, ok := b.FindProposal(name)
	return ok
}

// ApprovedDefinition returns the definition of the ComparisonBase, or nil.
func (b *Book) ApprovedDefinition(ctx context.Context, kind tool.DefinitionKind, id tool.ID) (json.RawMessage, error) {
	if b.ServerView(id.Server).DecisionsOn(kind, id.Tool).ComparisonBase() == nil {
		return nil, nil
	}
	raw, err := b.store.ApprovedDefinition(ctx, kind, id)
	if err != nil {
		return nil, fmt.Errorf("read the approved definition of %s: %w", id, err)
	}
	return raw, nil
}

// checkLimit rejects a change that exceeds the limits of a server.
func (v *ServerView) checkLimit(c ChangeSet) error {
	tools, offers := v.countEntriesWith(c.Tools)
	if max(tools, offers) > MaxTools {
		return problem.Newf(problem.TooLarge, "The limit of %d decisions for server '%s' is reached.", MaxTools, c.Server).
			WithHint("Remove the server and add it again to delete them.")
	}
	return nil
}

// withOtherRows adds all other entries to rows. Storing a launch makes its server known, and the store may have been
// replaced since the last write.
func (v *ServerView) withOtherRows(rows []DecisionRow) []DecisionRow {
	given := make(map[definitionKey]bool, len(rows))
	for _, row := range rows {
		given[definitionKey{row.Kind, row.Tool}] = true
	}
	for _, row := range v.toRows() {
		if !given[definitionKey{row.Kind, row.Tool}] && row.HasDecision() {
			rows = append(rows, row)
		}
	}
	return rows
}

// changeAndNotify applies the decision of a user and notifies the followers.
func (b *Book) changeAndNotify(ctx context.Context, d DecisionEvent, decide func(*bookState) (ChangeSet, error)) error {
	err := b.applyChange(ctx, decide)
	if err == nil {
		b.notifyFollowers(d)
	}
	return err
}

// applyChange stores the result of decide and makes it effective.
func (b *Book) applyChange(ctx context.Context, decide func(*bookState) (ChangeSet, error)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state.Load()
	if s == nil {
		return problem.New(problem.AuditUnavailable, "The approvals cannot be read yet, so nothing can be decided.",
			"Try again in a moment. If the problem persists, see `mcpproxy status` and the log of the daemon.")
	}
	c, s, err := b.saveWithRetry(ctx, s, decide)
	if err != nil || c.isEmpty() {
		return err
	}
	if c.Forget {
		b.holds.forgetServer(c.Server)
	}
	b.state.Store(s.withChange(c))
	return nil
}

// staleTries limits the retries of a decision when another instance was faster.
const staleTries = 10

// saveWithRetry stores the result of decide, and returns it with the state that it is based on.
func (b *Book) saveWithRetry(ctx context.Context, s *bookState, decide func(*bookState) (ChangeSet, error)) (ChangeSet, *bookState, error) {
	for try := 0; ; try++ {
		c, err := decide(s)
		if err != nil || c.isEmpty() {
			return c, s, err
		}
		if c.Launch != nil {
			c.Tools = s.serverView(c.Server).withOtherRows(c.Tools)
		}
		stored := c
		stored.Tools = slices.Clone(c.Tools)
		for i := range stored.Tools {
			stored.Tools[i].toStoredForm()
		}
		if err = b.store.SaveApprovals(ctx, stored); err == nil {
			return c, s, nil
		}
		if errors.Is(err, ErrStale) && try < staleTries {
			if s, err = b.readStore(ctx); err == nil {
				continue
			}
		}
		return c, s, problem.New(problem.AuditUnavailable, "The decision cannot be stored, so it does not take effect.",
			"Free space on the disk of the data directory, or check the daemon's log, and try again.").Because(err)
	}
}

func (c *ChangeSet) isEmpty() bool {
	return c.Server == "" && c.Propose == nil && c.RemoveProposal == ""
}
