package approval

import (
	"context"
	"slices"
	"sync"

	"mcpproxy/internal/catalog/tool"
)

// Admit evaluates what a server lists and stores the definitions that its trust accepts, in one write. If
// that fails, nothing is accepted: all evaluations then wait, and the error is returned. Followers are not
// notified: the caller publishes the result.
func (b *Book) Admit(ctx context.Context, server string, r Rules, all []Candidate) ([]Evaluation, error) {
	b.prescan(server, r, all)
	judged := make([]Evaluation, len(all))
	err := b.change(ctx, func(s *state) (Change, error) {
		v := s.view(server)
		r.Acquainted = s.isAcquainted(v)
		c, mark := Change{Server: server}, Mark{r.Trust.By(), b.now()}
		room := [...]int{MaxTools - v.tools, MaxTools - v.offers}
		for i, candidate := range all {
			e := v.Of(candidate.Kind, candidate.Tool)
			judged[i] = Evaluate(r, e, candidate)
			doubted := !judged[i].Accepted && !r.Quarantined && e.Pin == nil && e.Block == nil && candidate.isDoubtful(r.Trust)
			if !judged[i].Accepted && !doubted {
				continue
			}
			if e == (Entry{}) {
				left := &room[0]
				if candidate.Kind != tool.KindTool {
					left = &room[1]
				}
				if *left--; *left < 0 {
					judged[i] = Evaluation{Kind: candidate.Kind, Tool: candidate.Tool, Why: New}
					continue
				}
			}
			if doubted {
				c.Tools = append(c.Tools, doubt(e, candidate, mark))
				continue
			}
			e.Pin, e.Was, e.Unsigned = candidate.pin(mark), nil, nil
			c.Tools = append(c.Tools, candidate.row(e))
		}
		if len(c.Tools) == 0 {
			return Change{}, nil
		}
		return c, nil
	})
	if err != nil {
		withdraw(judged, all, b.View(server))
		return judged, err
	}
	if r.Quarantined { // it waits with its server
		return judged, nil
	}
	if news := b.holds.note(server, b.now(), all, judged); len(news) > 0 {
		_ = b.store.SaveHeld(ctx, server, news) // Restore repeats it when the store works again
	}
	return judged, nil
}

// Doubt puts automatically accepted definitions under review if they give instructions about a tool of
// another server; they wait until a user approves them, even after that server is removed. It returns the
// ones that wait now. Definitions that a user approved are not affected.
func (b *Book) Doubt(ctx context.Context, server string, r Rules, all []Candidate) (held []Evaluation, err error) {
	err = b.decide(ctx, Decided{Server: server}, func(s *state) (Change, error) {
		held = nil
		v, c := s.view(server), Change{Server: server}
		for _, candidate := range all {
			e := v.Of(candidate.Kind, candidate.Tool)
			if e.ByScan(candidate.Fingerprint) && candidate.isDoubtful(r.Trust) {
				c.Tools = append(c.Tools, doubt(e, candidate, Mark{r.Trust.By(), b.now()}))
				held = append(held, Evaluation{Kind: candidate.Kind, Tool: candidate.Tool, Why: New})
			}
		}
		if len(held) == 0 {
			return Change{}, nil
		}
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

// doubt returns a row that keeps a definition waiting until a user approves it.
func doubt(e Entry, c Candidate, m Mark) Row {
	e.Unsigned = nil
	if e.Pin = nil; e.Block == nil { // a block also holds back everything
		e.Block = &Block{Mark: m}
	}
	return Row{Kind: c.Kind, Tool: c.Tool, Entry: e}
}

// isAcquainted reports whether an unknown tool is new: after a loss of approvals, only for servers that a
// user has approved since, and only if the list of their tools is complete.
func (s *state) isAcquainted(v *View) bool { return !s.lost || v.launch != nil && !s.gaps }

// withdraw makes evaluations wait that could not be stored.
func withdraw(judged []Evaluation, all []Candidate, v *View) {
	for i, c := range all {
		judged[i] = Evaluate(Rules{}, v.Of(c.Kind, c.Tool), c)
	}
}

// prescan runs the scanner before the lock is taken. It scans at most as many definitions concurrently as
// there are CPUs.
func (b *Book) prescan(server string, r Rules, all []Candidate) {
	s := b.state.Load()
	if s == nil || r.Trust != Scan {
		return
	}
	v := s.view(server)
	r.Acquainted = s.isAcquainted(v)
	var looking sync.WaitGroup
	for part := range slices.Chunk(all, chunk) {
		b.scans <- struct{}{}
		looking.Go(func() {
			defer func() { <-b.scans }()
			for _, c := range part {
				Evaluate(r, v.Of(c.Kind, c.Tool), c)
			}
		})
	}
	looking.Wait()
}

// chunk is the number of definitions per batch of scans.
const chunk = 16
