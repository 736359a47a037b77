package approval

import (
	"context"
	"slices"
	"sync"

	"mcpproxy/internal/catalog/tool"
)

// Admit judges what a server lists and accepts what its trust allows, all at
// once. When that cannot be stored nothing is accepted: the judgements then say
// that everything waits, beside the error. Followers are not told: who asks
// publishes what is accepted together with the list.
func (b *Book) Admit(ctx context.Context, server string, r Rules, all []Candidate) ([]Evaluation, error) {
	b.consult(server, r, all)
	judged := make([]Evaluation, len(all))
	err := b.change(ctx, func(s *state) (Change, error) {
		v := s.view(server)
		r.Acquainted = s.acquainted(v)
		c, mark := Change{Server: server}, Mark{r.Trust.By(), b.now()}
		room := [...]int{MaxTools - v.tools, MaxTools - v.offers}
		for i, candidate := range all {
			e := v.Of(candidate.Kind, candidate.Tool)
			judged[i] = Evaluate(r, e, candidate)
			doubted := !judged[i].Accepted && !r.Quarantined && e.Pin == nil && e.Block == nil && candidate.doubtful(r.Trust)
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
	if r.Quarantined { // it waits as part of its server
		return judged, nil
	}
	if news := b.holds.note(server, b.now(), all, judged); len(news) > 0 {
		_ = b.keeper.SaveHeld(ctx, server, news) // Restore does once the store can be written
	}
	return judged, nil
}

// Doubt has definitions wait that the trust in their server has accepted, and that
// order something about a tool of another server: until a person approves them, also
// when that server is gone by then. It returns what waits from now on. What a person
// has approved stays approved, and what waits keeps waiting.
func (b *Book) Doubt(ctx context.Context, server string, r Rules, all []Candidate) (held []Evaluation, err error) {
	err = b.decide(ctx, Decided{Server: server}, func(s *state) (Change, error) {
		held = nil
		v, c := s.view(server), Change{Server: server}
		for _, candidate := range all {
			e := v.Of(candidate.Kind, candidate.Tool)
			if e.ByScan(candidate.Fingerprint) && candidate.doubtful(r.Trust) {
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

// doubt is a row that has a definition wait until a person approves it.
func doubt(e Entry, c Candidate, m Mark) Row {
	e.Unsigned = nil
	if e.Pin = nil; e.Block == nil { // which holds back everything, too
		e.Block = &Block{Mark: m}
	}
	return Row{Kind: c.Kind, Tool: c.Tool, Entry: e}
}

// acquainted reports whether a tool of which nothing is known is new: after
// approvals were lost, only with servers that a person has approved since, and
// only when it is known which tools there were.
func (s *state) acquainted(v *View) bool { return !s.lost || v.launch != nil && !s.gaps }

// withdraw makes what could not be stored wait.
func withdraw(judged []Evaluation, all []Candidate, v *View) {
	for i, c := range all {
		judged[i] = Evaluate(Rules{}, v.Of(c.Kind, c.Tool), c)
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
				Evaluate(r, v.Of(c.Kind, c.Tool), c)
			}
		})
	}
	looking.Wait()
}

// chunk is how many definitions are looked at before the next are taken.
const chunk = 16
