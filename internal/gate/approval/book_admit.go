package approval

import (
	"context"
	"slices"
	"sync"

	"mcpproxy/internal/catalog/tool"
)

// AcceptTrusted evaluates the definitions that a server lists and stores those that its trust setting accepts, in one
// write. If that fails, nothing is accepted: all these definitions wait, and the error is returned. Followers are not
// notified, because the caller publishes the result.
func (b *Book) AcceptTrusted(ctx context.Context, server string, r EvaluationRules, all []CandidateDefinition) ([]Evaluation, error) {
	b.prescan(server, r, all)
	judged := make([]Evaluation, len(all))
	err := b.applyChange(ctx, func(s *bookState) (ChangeSet, error) {
		v := s.serverView(server)
		r.UnknownIsNew = s.isUnknownToolNew(v)
		c, mark := ChangeSet{Server: server}, AuthorAndTime{r.Trust.AutomaticApproverName(), b.now()}
		room := [...]int{MaxTools - v.tools, MaxTools - v.offers}
		for i, candidate := range all {
			e := v.DecisionsOn(candidate.Kind, candidate.Tool)
			judged[i] = Evaluate(r, e, candidate)
			doubted := !judged[i].Accepted && !r.Quarantined && e.Pin == nil && e.Block == nil && candidate.exceedsTrust(r.Trust)
			if !judged[i].Accepted && !doubted {
				continue
			}
			if e == (DefinitionDecisions{}) {
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
				c.Tools = append(c.Tools, newHeldRow(e, candidate, mark))
				continue
			}
			e.Pin, e.Was, e.Unsigned = candidate.newPin(mark), nil, nil
			c.Tools = append(c.Tools, candidate.newDecisionRow(e))
		}
		if len(c.Tools) == 0 {
			return ChangeSet{}, nil
		}
		return c, nil
	})
	if err != nil {
		undoAcceptance(judged, all, b.ServerView(server))
		return judged, err
	}
	if r.Quarantined { // the definition waits with its server
		return judged, nil
	}
	if news := b.holds.recordWaiting(server, b.now(), all, judged); len(news) > 0 {
		_ = b.store.SaveHeld(ctx, server, news) // RewriteStore repeats the write when the store works again
	}
	return judged, nil
}

// HoldCrossServerInstructions puts automatically accepted definitions under review if they contain instructions about
// a tool of another server. They wait until a user approves them, even after that server is removed. It returns the
// definitions that wait now. Definitions that a user approved are not affected.
func (b *Book) HoldCrossServerInstructions(ctx context.Context, server string, r EvaluationRules, all []CandidateDefinition) (held []Evaluation, err error) {
	err = b.changeAndNotify(ctx, DecisionEvent{Server: server}, func(s *bookState) (ChangeSet, error) {
		held = nil
		v, c := s.serverView(server), ChangeSet{Server: server}
		for _, candidate := range all {
			e := v.DecisionsOn(candidate.Kind, candidate.Tool)
			if e.ApprovedByScan(candidate.Fingerprint) && candidate.exceedsTrust(r.Trust) {
				c.Tools = append(c.Tools, newHeldRow(e, candidate, AuthorAndTime{r.Trust.AutomaticApproverName(), b.now()}))
				held = append(held, Evaluation{Kind: candidate.Kind, Tool: candidate.Tool, Why: New})
			}
		}
		if len(held) == 0 {
			return ChangeSet{}, nil
		}
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return held, nil
}

// newHeldRow returns a row that keeps a definition waiting until a user approves it.
func newHeldRow(e DefinitionDecisions, c CandidateDefinition, m AuthorAndTime) DecisionRow {
	e.Unsigned = nil
	if e.Pin = nil; e.Block == nil { // an existing block already makes every definition wait
		e.Block = &Block{AuthorAndTime: m}
	}
	return DecisionRow{Kind: c.Kind, Tool: c.Tool, DefinitionDecisions: e}
}

// isUnknownToolNew reports whether an unknown tool is new. After a loss of approvals it is new only if a user has approved the
// server since, and if the list of its tools is complete.
func (s *bookState) isUnknownToolNew(v *ServerView) bool {
	return !s.lost || v.launch != nil && !s.restrictionsLost
}

// undoAcceptance makes the definitions wait whose acceptance could not be stored.
func undoAcceptance(judged []Evaluation, all []CandidateDefinition, v *ServerView) {
	for i, c := range all {
		judged[i] = Evaluate(EvaluationRules{}, v.DecisionsOn(c.Kind, c.Tool), c)
	}
}

// prescan runs the scanner before the lock is taken. It scans as many definitions concurrently as there are CPUs.
func (b *Book) prescan(server string, r EvaluationRules, all []CandidateDefinition) {
	s := b.state.Load()
	if s == nil || r.Trust != Scan {
		return
	}
	v := s.serverView(server)
	r.UnknownIsNew = s.isUnknownToolNew(v)
	var looking sync.WaitGroup
	for part := range slices.Chunk(all, chunk) {
		b.scans <- struct{}{}
		looking.Go(func() {
			defer func() { <-b.scans }()
			for _, c := range part {
				Evaluate(r, v.DecisionsOn(c.Kind, c.Tool), c)
			}
		})
	}
	looking.Wait()
}

// chunk is the number of definitions per batch of scans.
const chunk = 16
