package approval_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"mcpproxy/internal/catalog/scan"
	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/approval"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/approvaltest"
)

func candidate(name string, n byte) approval.CandidateDefinition {
	return approval.CandidateDefinition{
		Tool: name, Fingerprint: tool.Fingerprint{n}, Definition: json.RawMessage(fmt.Sprintf(`{"name":%q,"n":%d}`, name, n)),
		Report: func() scan.Report { return scan.Report{Verdict: scan.Clean} },
	}
}

var auto = approval.EvaluationRules{Trust: approval.Auto}

func admit(t *testing.T, b *approval.Book, r approval.EvaluationRules, all ...approval.CandidateDefinition) []approval.Evaluation {
	t.Helper()
	judged, err := b.AcceptTrusted(t.Context(), "s", r, all)
	if err != nil {
		t.Fatal(err)
	}
	return judged
}

// every contains each way to make a decision.
var every = map[string]func(b *approval.Book, t *testing.T) error{
	"admit": func(b *approval.Book, t *testing.T) error {
		_, err := b.AcceptTrusted(t.Context(), "s", auto, []approval.CandidateDefinition{candidate("new", 1)})
		return err
	},
	"approve": func(b *approval.Book, t *testing.T) error {
		return b.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{candidate("new", 1)}, nil)
	},
	"block": func(b *approval.Book, t *testing.T) error {
		return b.Block(t.Context(), tool.KindTool, tool.ID{Server: "s", Tool: "known"}, tool.Fingerprint{1}, "admin")
	},
	"take back": func(b *approval.Book, t *testing.T) error {
		return b.UndoApproval(t.Context(), candidate("known", 1), tool.ID{Server: "s", Tool: "known"}, tool.Fingerprint{1}, auto.Trust, "admin")
	},
	"doubt": func(b *approval.Book, t *testing.T) error {
		doubtful := candidate("new", 1)
		doubtful.Report, doubtful.Orders = func() scan.Report { return scan.Report{} }, func() bool { return true }
		_, err := b.AcceptTrusted(t.Context(), "s", approval.EvaluationRules{Trust: approval.Scan}, []approval.CandidateDefinition{doubtful})
		return err
	},
	"switch": func(b *approval.Book, t *testing.T) error {
		return b.SwitchTool(t.Context(), tool.ID{Server: "s", Tool: "known"}, false, "admin")
	},
	"approve a launch": func(b *approval.Book, t *testing.T) error {
		return b.ApproveLaunch(t.Context(), "s", tool.Fingerprint{2}, "admin")
	},
	"revoke a launch": func(b *approval.Book, t *testing.T) error { return b.RevokeLaunch(t.Context(), "s") },
	"forget":          func(b *approval.Book, t *testing.T) error { return b.ForgetServer(t.Context(), "s") },
	"propose": func(b *approval.Book, t *testing.T) error {
		return b.ProposeServer(t.Context(), "p", json.RawMessage(`{}`), "agent", fits)
	},
}

// say describes all decisions in a book, for these tests.
func say(b *approval.Book) string {
	out := fmt.Sprintf("known %v lost %v proposals %d", b.ServerView("s").IsLoaded(), b.ApprovalsLost(), len(b.ProposedServers()))
	if l := b.ServerView("s").ApprovedLaunch(); l != nil {
		out += fmt.Sprintf(" launch %s", l.Fingerprint)
	}
	for _, name := range []string{"known", "new"} {
		e := b.ServerView("s").ToolDecisions(name)
		out += fmt.Sprintf(" %s: off %v", name, e.Off != nil)
		if e.Pin != nil {
			out += fmt.Sprintf(" pinned %s by %s", e.Pin.Fingerprint, e.Pin.By)
		}
		if e.Block != nil {
			out += fmt.Sprintf(" blocked %s", e.Block.Fingerprint)
		}
	}
	return out
}

// TestDecisionsAreStoredBeforeTheyTakeEffect checks that a decision survives a restart, and that a decision that
// cannot be stored does not take effect.
func TestDecisionsAreStoredBeforeTheyTakeEffect(t *testing.T) {
	for name, decide := range every {
		t.Run(name, func(t *testing.T) {
			memory := new(approvaltest.MemoryStore)
			b := memory.NewBook()
			admit(t, b, auto, candidate("known", 1))
			if err := b.ApproveLaunch(t.Context(), "s", tool.Fingerprint{1}, "admin"); err != nil {
				t.Fatal(err)
			}
			before := say(b)

			memory.SetError(errors.New("the disk is full"))
			err := decide(b, t)
			var p *problem.Problem
			if !errors.As(err, &p) || p.Code != problem.AuditUnavailable {
				t.Errorf("the error is %v", err)
			}
			if say(b) != before {
				t.Errorf("the decision took effect although it was not stored:\n%s\n%s", before, say(b))
			}
			memory.SetError(nil)
			if err := decide(b, t); err != nil {
				t.Fatal(err)
			}
			if say(b) == before {
				t.Error("nothing was decided")
			}
			if again := memory.NewBook(); say(again) != say(b) {
				t.Errorf("after a restart:\n%s\n%s", say(again), say(b))
			}
		})
	}
}

// TestUnstoredAcceptanceWaits checks that definitions that a trust setting accepts wait if the acceptance cannot be
// stored.
func TestUnstoredAcceptanceWaits(t *testing.T) {
	memory := new(approvaltest.MemoryStore)
	b := memory.NewBook()
	admit(t, b, auto, candidate("known", 1))
	memory.SetError(errors.New("the disk is full"))
	judged, err := b.AcceptTrusted(t.Context(), "s", auto, []approval.CandidateDefinition{candidate("known", 2), candidate("new", 1)})
	if err == nil || len(judged) != 2 {
		t.Fatalf("%+v, %v", judged, err)
	}
	for i, why := range []approval.WaitReason{approval.Changed, approval.New} {
		if judged[i].Accepted || judged[i].Why != why {
			t.Errorf("got %+v, want it to wait: %s", judged[i], why)
		}
	}
}

func TestUnreadableStoreApprovesNothing(t *testing.T) {
	memory := new(approvaltest.MemoryStore)
	admit(t, memory.NewBook(), auto, candidate("known", 1))
	memory.SetError(errors.New("the file is damaged"))
	b := approval.NewBook(memory, nil)
	if err := b.Load(t.Context()); err == nil {
		t.Fatal("the store was read")
	}
	v := b.ServerView("s")
	if v.IsLoaded() || approves(v, "known", tool.Fingerprint{1}) || v.ApprovedLaunch() != nil {
		t.Error("a definition is approved")
	}
	memory.SetError(nil)
	for name, decide := range every {
		if err := decide(b, t); err == nil {
			t.Errorf("%s: decided although nothing was loaded", name)
		}
	}
	select {
	case <-b.LoadedChan():
		t.Error("the book is reported as loaded")
	default:
	}
	if err := b.Load(t.Context()); err != nil || !approves(b.ServerView("s"), "known", tool.Fingerprint{1}) {
		t.Errorf("after the store works again: %v", err)
	}
	<-b.LoadedChan()
}

func TestLostBookAcceptsNothingNew(t *testing.T) {
	memory := new(approvaltest.MemoryStore)
	memory.MarkLost()
	b := memory.NewBook()
	for _, trust := range []approval.Trust{approval.Scan, approval.Auto} {
		if j := admit(t, b, approval.EvaluationRules{Trust: trust, UnknownIsNew: true}, candidate("new", 1)); j[0].Accepted || j[0].Why != approval.New {
			t.Errorf("trust %s: %+v", trust, j)
		}
	}
	launch := tool.Fingerprint{9}
	if err := b.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{candidate("new", 1)}, &launch); err != nil {
		t.Fatal(err)
	}
	if j := admit(t, b, auto, candidate("newer", 1)); !j[0].Accepted {
		t.Errorf("after a user approved the server: %+v", j)
	}
}

// TestLaunchIsStoredWithEarlierDecisions covers a store that is removed while the book is in use. A later approval of
// the server also stores the earlier decisions about its tools. Otherwise, after a restart these tools would be new
// tools of a known server.
func TestLaunchIsStoredWithEarlierDecisions(t *testing.T) {
	var m approvaltest.MemoryStore
	b := m.NewBook()
	admit(t, b, auto, candidate("a", 1), candidate("b", 1), candidate("c", 1))
	if err := errors.Join(b.SwitchTool(t.Context(), tool.ID{Server: "s", Tool: "a"}, false, "admin"),
		b.Block(t.Context(), tool.KindTool, tool.ID{Server: "s", Tool: "b"}, tool.Fingerprint{1}, "admin")); err != nil {
		t.Fatal(err)
	}
	m.MarkLost()
	for name, approve := range map[string]func() error{
		"its launch": func() error { return b.ApproveLaunch(t.Context(), "s", tool.Fingerprint{9}, "admin") },
		"its definitions": func() error {
			return b.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{candidate("c", 2)}, &tool.Fingerprint{9})
		},
	} {
		if err := approve(); err != nil {
			t.Fatal(err)
		}
		next := m.NewBook().ServerView("s")
		if next.ToolDecisions("a").Off == nil || next.ToolDecisions("b").Block == nil || next.ToolDecisions("c").Pin == nil {
			t.Errorf("after %s: %+v %+v %+v", name, next.ToolDecisions("a"), next.ToolDecisions("b"), next.ToolDecisions("c"))
		}
	}
	if !approves(m.NewBook().ServerView("s"), "c", tool.Fingerprint{2}) {
		t.Error("the definition that was approved with the launch is not callable")
	}
}

func TestBlocking(t *testing.T) {
	id := tool.ID{Server: "s", Tool: "a"}
	b := new(approvaltest.MemoryStore).NewBook()
	admit(t, b, auto, candidate("a", 1))
	if err := b.Block(t.Context(), tool.KindTool, id, tool.Fingerprint{1}, "admin"); err != nil {
		t.Fatal(err)
	}
	if approves(b.ServerView("s"), "a", tool.Fingerprint{1}) {
		t.Error("the approved definition was blocked but may be called")
	}
	for n, why := range map[byte]approval.WaitReason{1: approval.Blocked, 2: approval.New} {
		if j := admit(t, b, auto, candidate("a", n)); j[0].Accepted || j[0].Why != why {
			t.Errorf("definition %d after the block: %+v", n, j)
		}
	}
	if err := b.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{candidate("a", 2)}, nil); err != nil {
		t.Fatal(err)
	}
	// Approving another definition does not undo the refusal.
	if j := admit(t, b, auto, candidate("a", 1)); j[0].Accepted || j[0].Why != approval.Blocked {
		t.Errorf("the blocked definition was accepted again: %+v", j)
	}
	if err := b.Block(t.Context(), tool.KindTool, id, tool.Fingerprint{3}, "admin"); err != nil {
		t.Fatal(err)
	}
	if !approves(b.ServerView("s"), "a", tool.Fingerprint{2}) {
		t.Error("blocking another definition ended the approval")
	}
}

// TestWithdraw checks that a withdrawn approval is no longer valid under any trust setting, until a user approves the
// tool again.
func TestWithdraw(t *testing.T) {
	id, memory := tool.ID{Server: "s", Tool: "a"}, new(approvaltest.MemoryStore)
	b := memory.NewBook()
	admit(t, b, auto, candidate("a", 1))
	for _, wrong := range []byte{2, 0} {
		if err := b.UndoApproval(t.Context(), candidate("a", 1), id, tool.Fingerprint{wrong}, auto.Trust, "admin"); problem.From(err) == nil || problem.From(err).Code != problem.Conflict {
			t.Errorf("withdrawing an approval that does not exist: %v", err)
		}
	}
	if err := b.UndoApproval(t.Context(), candidate("a", 1), id, tool.Fingerprint{1}, auto.Trust, "admin"); err != nil {
		t.Fatal(err)
	}
	if err := b.UndoApproval(t.Context(), candidate("a", 1), id, tool.Fingerprint{1}, auto.Trust, "admin"); problem.From(err) == nil || problem.From(err).Code != problem.Conflict {
		t.Errorf("withdrawing an approval twice: %v", err)
	}
	for _, b := range []*approval.Book{b, memory.NewBook()} {
		for _, n := range []byte{1, 2} {
			j := admit(t, b, auto, candidate("a", n))
			if j[0].Accepted || j[0].Why != approval.New || approves(b.ServerView("s"), "a", tool.Fingerprint{n}) {
				t.Errorf("definition %d after the withdrawal: %+v", n, j)
			}
		}
	}
	if err := b.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{candidate("a", 1)}, nil); err != nil {
		t.Fatal(err)
	}
	if j := admit(t, b, auto, candidate("a", 2)); !j[0].Accepted {
		t.Errorf("after a user approved it again: %+v", j)
	}
}

// TestWithdrawRestores checks that withdrawing an approval restores the previous decision, also after a restart: the
// approved definition, the refusal, and the author and time of the decision.
func TestWithdrawRestores(t *testing.T) {
	id := tool.ID{Server: "s", Tool: "a"}
	for name, tt := range map[string]struct {
		trust  approval.Trust
		before func(b *approval.Book) error
		since  func(b *approval.Book) error
		want   approval.WaitReason // reason why definition 2 waits
		pinned bool                // definition 1 is approved again
	}{
		"approved by a user": {trust: approval.Manual, before: func(b *approval.Book) error {
			return b.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{candidate("a", 1)}, nil)
		}, want: approval.Changed, pinned: true},
		"approved by trust": {trust: approval.Scan, before: func(b *approval.Book) error {
			admit(t, b, approval.EvaluationRules{Trust: approval.Scan, UnknownIsNew: true}, candidate("a", 1))
			return nil
		}, want: approval.Changed, pinned: true},
		"refused": {trust: approval.Auto, before: func(b *approval.Book) error {
			return b.Block(t.Context(), tool.KindTool, id, tool.Fingerprint{2}, "admin")
		}, want: approval.Blocked},
		"approved twice": {trust: approval.Manual, before: func(b *approval.Book) error {
			return b.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{candidate("a", 1)}, nil)
		}, since: func(b *approval.Book) error {
			return b.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{candidate("a", 2)}, nil)
		}, want: approval.Changed, pinned: true},
		"the earlier one refused since": {trust: approval.Manual, before: func(b *approval.Book) error {
			return b.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{candidate("a", 1)}, nil)
		}, since: func(b *approval.Book) error {
			return b.Block(t.Context(), tool.KindTool, id, tool.Fingerprint{1}, "admin")
		}, want: approval.New},
		"what the trust accepts": {trust: approval.Auto, before: func(b *approval.Book) error {
			return b.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{candidate("a", 1)}, nil)
		}, want: approval.New},
		"nothing": {trust: approval.Auto, want: approval.New},
	} {
		t.Run(name, func(t *testing.T) {
			memory := new(approvaltest.MemoryStore)
			b := memory.NewBook()
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			if tt.before != nil {
				must(tt.before(b))
			}
			before := b.ServerView("s").ToolDecisions("a")
			must(b.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{candidate("a", 2)}, nil))
			if tt.since != nil {
				must(tt.since(b))
			}
			b = memory.NewBook()
			must(b.UndoApproval(t.Context(), candidate("a", 2), id, tool.Fingerprint{2}, tt.trust, "admin"))
			for _, b := range []*approval.Book{b, memory.NewBook()} {
				e := b.ServerView("s").ToolDecisions("a")
				if j := admit(t, b, approval.EvaluationRules{Trust: tt.trust, UnknownIsNew: true}, candidate("a", 2)); j[0].Accepted || j[0].Why != tt.want {
					t.Errorf("definition 2: %+v", j)
				}
				if tt.pinned != approves(b.ServerView("s"), "a", tool.Fingerprint{1}) || tt.pinned && (*e.Pin != *before.Pin || e.Block != nil) {
					t.Errorf("%+v, before the approval %+v", e, before)
				}
			}
			if !tt.pinned {
				return
			}
			if raw, err := b.ApprovedDefinition(t.Context(), tool.KindTool, id); err != nil || string(raw) != string(candidate("a", 1).Definition) {
				t.Errorf("the restored definition: %s, %v", raw, err)
			}
		})
	}
}

// TestUnblocking checks that an unblocked definition waits under any trust setting, and is compared with the approved
// one.
func TestUnblocking(t *testing.T) {
	id := tool.ID{Server: "s", Tool: "a"}
	for _, trust := range []approval.Trust{approval.Manual, approval.Scan, approval.Auto} {
		for _, known := range []bool{false, true} {
			memory := new(approvaltest.MemoryStore)
			b := memory.NewBook()
			rules := approval.EvaluationRules{Trust: trust, UnknownIsNew: true}
			if known {
				if err := b.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{candidate("a", 1)}, nil); err != nil {
					t.Fatal(err)
				}
			}
			if err := b.Block(t.Context(), tool.KindTool, id, tool.Fingerprint{2}, "admin"); err != nil {
				t.Fatal(err)
			}
			if err := b.Unblock(t.Context(), candidate("a", 3), id, trust, "admin"); problem.From(err) == nil || problem.From(err).Code != problem.Conflict {
				t.Errorf("unblocking a definition that is not blocked: %v", err)
			}
			if err := b.Unblock(t.Context(), candidate("a", 2), id, trust, "admin"); err != nil {
				t.Fatal(err)
			}
			want := approval.New
			if known {
				want = approval.Changed
			}
			for _, b := range []*approval.Book{b, memory.NewBook()} {
				if j := admit(t, b, rules, candidate("a", 2)); j[0].Accepted || j[0].Why != want {
					t.Errorf("%s, approved before %v: %+v", trust, known, j)
				}
			}
		}
	}
}

// TestBlockingKeepsTheBaseline checks that blocking an approved definition ends its approval. When it is unblocked, it
// and later definitions wait and are compared with the last approved text, also after a restart and if the clock was
// set back.
func TestBlockingKeepsTheBaseline(t *testing.T) {
	id := tool.ID{Server: "s", Tool: "a"}
	approve := func(b *approval.Book, n byte) error {
		return b.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{candidate("a", n)}, nil)
	}
	admitted := func(b *approval.Book, n byte) error {
		admit(t, b, auto, candidate("a", n))
		return nil
	}
	for name, tt := range map[string]struct {
		decide  []func(b *approval.Book) error
		blocked byte                   // the definition that is blocked and unblocked
		want    [4]approval.WaitReason // reasons why definitions 1 to 3 wait afterwards; "" if approved
		base    byte                   // the definition that is shown as approved; 0: none
	}{
		"approved once": {
			decide:  []func(b *approval.Book) error{func(b *approval.Book) error { return approve(b, 1) }},
			blocked: 1, want: [4]approval.WaitReason{1: approval.New, 2: approval.Changed, 3: approval.Changed}, base: 1,
		},
		"accepted by trust": {
			decide:  []func(b *approval.Book) error{func(b *approval.Book) error { return admitted(b, 1) }},
			blocked: 1, want: [4]approval.WaitReason{1: approval.New, 2: approval.Changed, 3: approval.Changed}, base: 1,
		},
		"approved twice": {
			decide: []func(b *approval.Book) error{
				func(b *approval.Book) error { return approve(b, 1) }, func(b *approval.Book) error { return approve(b, 2) },
			},
			blocked: 2, want: [4]approval.WaitReason{1: approval.New, 2: approval.Changed, 3: approval.Changed}, base: 1,
		},
		"never approved": {blocked: 1, want: [4]approval.WaitReason{1: approval.New, 2: approval.New, 3: approval.New}},
		"blocked twice": {
			decide: []func(b *approval.Book) error{
				func(b *approval.Book) error { return approve(b, 1) },
				func(b *approval.Book) error {
					return b.Block(t.Context(), tool.KindTool, id, tool.Fingerprint{1}, "admin")
				},
				func(b *approval.Book) error {
					return b.Unblock(t.Context(), candidate("a", 1), id, approval.Manual, "admin")
				},
			},
			blocked: 1, want: [4]approval.WaitReason{1: approval.New, 2: approval.Changed, 3: approval.Changed}, base: 1,
		},
		"another one blocked": { // its block replaces the block that overrides the approval
			decide: []func(b *approval.Book) error{
				func(b *approval.Book) error { return approve(b, 1) },
				func(b *approval.Book) error {
					return b.Block(t.Context(), tool.KindTool, id, tool.Fingerprint{1}, "admin")
				},
				func(b *approval.Book) error {
					return b.Unblock(t.Context(), candidate("a", 1), id, approval.Manual, "admin")
				},
			},
			blocked: 3, want: [4]approval.WaitReason{1: approval.New, 2: approval.New, 3: approval.New},
		},
	} {
		for _, restarts := range []bool{false, true} {
			memory := new(approvaltest.MemoryStore)
			b := memory.NewBook()
			do := func(decide func(b *approval.Book) error) {
				t.Helper()
				if err := decide(b); err != nil {
					t.Fatal(name, err)
				}
				if restarts {
					b = memory.NewBook()
				}
			}
			for _, decide := range tt.decide {
				do(decide)
			}
			do(func(b *approval.Book) error {
				return b.Block(t.Context(), tool.KindTool, id, tool.Fingerprint{tt.blocked}, "admin")
			})
			if approves(b.ServerView("s"), "a", tool.Fingerprint{tt.blocked}) {
				t.Errorf("%s: a blocked definition may be called", name)
			}
			do(func(b *approval.Book) error {
				return b.Unblock(t.Context(), candidate("a", tt.blocked), id, approval.Manual, "admin")
			})
			for n := byte(1); n <= 3; n++ {
				if j := admit(t, b, auto, candidate("a", n)); j[0].Accepted || j[0].Why != tt.want[n] {
					t.Errorf("%s, restarts %v: definition %d waits as %q, want %q", name, restarts, n, j[0].Why, tt.want[n])
				}
			}
			raw, err := b.ApprovedDefinition(t.Context(), tool.KindTool, id)
			want := ""
			if tt.base != 0 {
				want = string(candidate("a", tt.base).Definition)
			}
			if err != nil || string(raw) != want {
				t.Errorf("%s, restarts %v: compared with %s, want %s, %v", name, restarts, raw, want, err)
			}
			do(func(b *approval.Book) error { return approve(b, 3) })
			do(func(b *approval.Book) error {
				return b.UndoApproval(t.Context(), candidate("a", 3), id, tool.Fingerprint{3}, approval.Manual, "admin")
			})
			if j := admit(t, b, approval.EvaluationRules{Trust: approval.Manual, UnknownIsNew: true}, candidate("a", 3)); j[0].Why != tt.want[3] {
				t.Errorf("%s, restarts %v: after a withdrawn approval it waits as %q, want %q", name, restarts, j[0].Why, tt.want[3])
			}
		}
	}
}

// TestSince checks that the time since which a definition waits survives a restart and a failing store, and starts
// again with another definition.
func TestSince(t *testing.T) {
	memory := new(approvaltest.MemoryStore)
	b := memory.NewBook()
	manual := approval.EvaluationRules{Trust: approval.Manual}
	admit(t, b, manual, candidate("a", 1), candidate("b", 1))
	since := b.HeldSince("s", candidate("a", 1))
	if since.IsZero() || !b.HeldSince("s", candidate("a", 2)).IsZero() || !b.HeldSince("other", candidate("a", 1)).IsZero() {
		t.Errorf("a waits since %v", since)
	}
	admit(t, b, manual, candidate("a", 1), candidate("b", 2))
	if again := memory.NewBook(); !again.HeldSince("s", candidate("a", 1)).Equal(since) || !b.HeldSince("s", candidate("b", 2)).After(since) {
		t.Errorf("after a restart a waits since %v, before since %v", again.HeldSince("s", candidate("a", 1)), since)
	}
	memory.SetError(errors.New("the disk is full"))
	_, _ = b.AcceptTrusted(t.Context(), "s", manual, []approval.CandidateDefinition{candidate("c", 1)}) // a held definition needs no store
	memory.SetError(nil)
	if err := b.RewriteStore(t.Context(), func(tool.DefinitionKind, tool.ID, tool.Fingerprint) json.RawMessage { return nil }); err != nil {
		t.Fatal(err)
	}
	if again := memory.NewBook(); again.HeldSince("s", candidate("c", 1)).IsZero() || !again.HeldSince("s", candidate("a", 1)).Equal(since) {
		t.Error("a time that a failing store did not accept is lost")
	}
	if err := b.ForgetServer(t.Context(), "s"); err != nil || !memory.NewBook().HeldSince("s", candidate("a", 1)).IsZero() || !b.HeldSince("s", candidate("a", 1)).IsZero() {
		t.Errorf("a forgotten definition has a waiting time: %v", err)
	}
}

// TestBookIsBounded checks that the number of stored definitions is limited for a server that keeps listing new
// tools, and that no existing decision is lost.
func TestBookIsBounded(t *testing.T) {
	b := new(approvaltest.MemoryStore).NewBook()
	all := make([]approval.CandidateDefinition, approval.MaxTools+10)
	for i := range all {
		all[i] = candidate(fmt.Sprint("t", i), 1)
	}
	accepted := 0
	for _, j := range admit(t, b, auto, all...) {
		if j.Accepted {
			accepted++
		}
	}
	if accepted != approval.MaxTools || !approves(b.ServerView("s"), "t0", tool.Fingerprint{1}) {
		t.Errorf("%d accepted", accepted)
	}
	err := b.SwitchTool(t.Context(), tool.ID{Server: "s", Tool: "one more"}, false, "admin")
	if p := problem.From(err); p == nil || p.Code != problem.TooLarge {
		t.Errorf("one more definition: %v", err)
	}
	for i := range approval.MaxProposals {
		if err := b.ProposeServer(t.Context(), fmt.Sprint("p", i), nil, "agent", fits); err != nil {
			t.Fatal(err)
		}
	}
	if p := problem.From(b.ProposeServer(t.Context(), "one more", nil, "agent", fits)); p == nil || p.Code != problem.Overloaded {
		t.Errorf("one more proposal: %v", p)
	}
}

// TestListIsOneWrite checks that the first list of a server causes one write, and a list without anything new causes
// none.
func TestListIsOneWrite(t *testing.T) {
	memory := new(approvaltest.MemoryStore)
	b := memory.NewBook()
	var all []approval.CandidateDefinition
	for i := range 500 {
		all = append(all, candidate(fmt.Sprint("t", i), 1))
	}
	admit(t, b, approval.EvaluationRules{Trust: approval.Scan}, all...)
	admit(t, b, approval.EvaluationRules{Trust: approval.Scan}, all...)
	if memory.SaveCount() != 1 {
		t.Errorf("%d writes", memory.SaveCount())
	}
}

// TestBlockDuringAnEvaluation checks that the result of an evaluation does not undo a block that arrived during the
// evaluation.
func TestBlockDuringAnEvaluation(t *testing.T) {
	for range 50 {
		b := new(approvaltest.MemoryStore).NewBook()
		var both sync.WaitGroup
		both.Go(func() {
			_ = b.Block(t.Context(), tool.KindTool, tool.ID{Server: "s", Tool: "a"}, tool.Fingerprint{1}, "admin")
		})
		both.Go(func() {
			_, _ = b.AcceptTrusted(t.Context(), "s", auto, []approval.CandidateDefinition{candidate("a", 1)})
		})
		both.Wait()
		if approves(b.ServerView("s"), "a", tool.Fingerprint{1}) {
			t.Fatal("a blocked definition is approved")
		}
	}
}

func TestReadingAllocatesNothing(t *testing.T) {
	b := new(approvaltest.MemoryStore).NewBook()
	admit(t, b, auto, candidate("a", 1))
	if n := testing.AllocsPerRun(100, func() {
		if !approves(b.ServerView("s"), "a", tool.Fingerprint{1}) || approves(b.ServerView("x"), "a", tool.Fingerprint{1}) {
			t.Fatal("unexpected decision")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// fits accepts every proposal.
func fits([]approval.ServerProposal) error { return nil }

// approves reports whether the book allows calls with this definition of a tool: it is approved, and the tool is not
// switched off.
func approves(v *approval.ServerView, name string, f tool.Fingerprint) bool {
	e := v.ToolDecisions(name)
	return e.Off == nil && e.Approves(f)
}

// TestFollowersAreNotifiedOnce checks that every follower is notified of each reload and of each decision of a user,
// in the order of the followers, when the decision takes effect. It is not notified of decisions that were not
// stored, or of definitions that the server's trust setting accepts.
func TestFollowersAreNotifiedOnce(t *testing.T) {
	m := &approvaltest.MemoryStore{}
	b := approval.NewBook(m, nil)
	var told []string
	for _, who := range []string{"a", "b"} {
		b.Subscribe(func(d approval.DecisionEvent) {
			told = append(told, fmt.Sprintf("%s:%s:%v:%v", who, d.Server, d.Relaunched, b.ServerView("s").ApprovedLaunch() != nil))
		})
	}
	f := tool.Fingerprint{1}
	for _, c := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"read", func() error { return b.Load(t.Context()) }, []string{"a::false:false", "b::false:false"}},
		{"read again", func() error { return b.Load(t.Context()) }, nil},
		{"by trust", func() error {
			return second(b.AcceptTrusted(t.Context(), "s", auto, []approval.CandidateDefinition{candidate("a", 1)}))
		}, nil},
		{"proposed", func() error { return b.ProposeServer(t.Context(), "p", nil, "agent", fits) }, nil},
		{"launch", func() error { return b.ApproveLaunch(t.Context(), "s", f, "admin") }, []string{"a:s:true:true", "b:s:true:true"}},
		{"approved", func() error {
			return b.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{candidate("a", 2)}, &f)
		}, []string{"a:s:false:true", "b:s:false:true"}},
		{"switched", func() error { return b.SwitchTool(t.Context(), tool.ID{Server: "s", Tool: "a"}, false, "admin") }, []string{"a:s:false:true", "b:s:false:true"}},
		{"revoked", func() error { return b.RevokeLaunch(t.Context(), "s") }, []string{"a:s:false:false", "b:s:false:false"}},
		{"forgotten", func() error { return b.ForgetServer(t.Context(), "s") }, []string{"a:s:false:false", "b:s:false:false"}},
	} {
		told = nil
		if err := c.do(); err != nil {
			t.Fatal(c.name, err)
		}
		if !slices.Equal(told, c.want) {
			t.Errorf("%s: notified of %q, want %q", c.name, told, c.want)
		}
	}
	told = nil
	m.SetError(errors.New("the disk is full"))
	if err := b.ApproveLaunch(t.Context(), "s", f, "admin"); err == nil || told != nil {
		t.Errorf("a decision that was not stored: %v, notified of %q", err, told)
	}
}

func second[T any](_ T, err error) error { return err }

// TestHoldCrossServerInstructions checks that a definition with an instruction about a tool of another server is held
// whatever its own server's trust setting is, both when it is new and when it was accepted before. Only a user can
// approve it, and the approval of a user stays valid.
func TestHoldCrossServerInstructions(t *testing.T) {
	scanned := approval.EvaluationRules{Trust: approval.Scan, UnknownIsNew: true}
	orders, verdict := true, scan.Review
	doubtful := candidate("known", 1)
	doubtful.Orders = func() bool { return orders }
	doubtful.Report = func() scan.Report { return scan.Report{Verdict: verdict} }
	doubt := func(b *approval.Book, r approval.EvaluationRules, all ...approval.CandidateDefinition) []approval.Evaluation {
		t.Helper()
		held, err := b.HoldCrossServerInstructions(t.Context(), "s", r, all)
		if err != nil {
			t.Fatal(err)
		}
		return held
	}
	for _, when := range []string{"at first sight", "accepted before"} {
		memory := new(approvaltest.MemoryStore)
		b := memory.NewBook()
		if when == "accepted before" {
			orders, verdict = false, scan.Clean
			if j := admit(t, b, scanned, doubtful); !j[0].Accepted {
				t.Fatalf("%s: %+v", when, j)
			}
			if held := doubt(b, scanned, doubtful); len(held) != 0 {
				t.Errorf("%s: held definitions without instructions: %+v", when, held)
			}
			orders, verdict = true, scan.Review
			if held := doubt(b, approval.EvaluationRules{Trust: approval.Auto}, doubtful); len(held) != 0 {
				t.Errorf("%s: with trust auto, held %+v", when, held)
			}
			if held := doubt(b, scanned, doubtful, candidate("new", 1)); len(held) != 1 || held[0].Tool != "known" || held[0].Why != approval.New {
				t.Errorf("%s: held %+v", when, held)
			}
		} else if j := admit(t, b, scanned, doubtful); j[0].Accepted || j[0].Why != approval.New {
			t.Fatalf("%s: %+v", when, j)
		}
		if held := doubt(b, scanned, doubtful); len(held) != 0 {
			t.Errorf("%s: held twice: %+v", when, held)
		}
		orders, verdict = false, scan.Clean // the other server was removed
		for _, b := range []*approval.Book{b, memory.NewBook()} {
			for _, r := range []approval.EvaluationRules{scanned, {Trust: approval.Auto, UnknownIsNew: true}} {
				if j := admit(t, b, r, doubtful, candidate("known", 2)); j[0].Accepted || j[1].Accepted {
					t.Errorf("%s: accepted by trust %s: %+v", when, r.Trust, j)
				}
			}
		}
		orders, verdict = true, scan.Review
		if err := b.Approve(t.Context(), "s", "admin", []approval.CandidateDefinition{doubtful}, nil); err != nil {
			t.Fatal(err)
		}
		if held := doubt(b, scanned, doubtful); len(held) != 0 || !b.ServerView("s").ToolDecisions("known").Approves(doubtful.Fingerprint) || b.ServerView("s").ToolDecisions("known").Block != nil {
			t.Errorf("%s: held a definition that a user approved: %+v, %s", when, held, say(b))
		}
	}

	// A change that cannot be stored takes no effect, and nothing is marked in a review.
	memory := new(approvaltest.MemoryStore)
	b := memory.NewBook()
	orders, verdict = false, scan.Clean
	admit(t, b, scanned, doubtful)
	orders = true
	memory.SetError(errors.New("the disk is full"))
	if held, err := b.HoldCrossServerInstructions(t.Context(), "s", scanned, []approval.CandidateDefinition{doubtful}); err == nil || held != nil || !b.ServerView("s").ToolDecisions("known").ApprovedByScan(doubtful.Fingerprint) {
		t.Errorf("not stored: %+v, %v, %s", held, err, say(b))
	}
	quarantined := scanned
	quarantined.Quarantined = true
	b = new(approvaltest.MemoryStore).NewBook()
	if j := admit(t, b, quarantined, doubtful); j[0].Accepted || b.ServerView("s").ToolDecisions("known").HasDecision() {
		t.Errorf("in a review: %+v, %s", j, say(b))
	}
}
