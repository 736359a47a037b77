package ask

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/presencetest"
)

// TestApprovalIsSigned checks that a call does not continue with an approval that only the store has, that was signed
// for other content, or that was signed before the start.
func TestApprovalIsSigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		person := presencetest.NewSigner(t)
		m := &memory{all: map[string]*Question{}}
		c := held("a", nil)
		c.Lane, c.Shown, c.Wait = "write", json.RawMessage(`{"b":1,"a":2}`), time.Second
		approved := func(sign func(*Question)) (Approval, error) {
			h := NewWaiter(m, person.Gate, time.Now, func() {})
			if _, err := h.AwaitApproval(t.Context(), c); problem.From(err).Code != problem.ApprovalPending {
				t.Fatalf("no approval was requested: %v", err)
			}
			for _, q := range m.all {
				if q.State == Waiting {
					if p := q.RecordAnswer(Answer{Approve: true, By: "admin", At: time.Now()}); p != nil {
						t.Fatal(p)
					}
					sign(q)
				}
			}
			h = NewWaiter(m, person.Gate, time.Now, func() {})
			return h.AwaitApproval(t.Context(), c)
		}
		refused := func(what string, sign func(*Question)) {
			t.Helper()
			if pass, err := approved(sign); pass.ID != "" || problem.From(err).Code != problem.ApprovalPending {
				t.Errorf("%s: %+v, %v", what, pass, err)
			}
			clear(m.all)
		}
		signed := func(q *Question) { person.Sign(CallClaim(q.ID, q.Until, q)) }
		refused("signed by nobody", func(*Question) {})
		refused("of what was shown otherwise", func(q *Question) { q.Shown = json.RawMessage(`{"a":2,"b":3}`); signed(q) })
		refused("of another lane", func(q *Question) { q.Lane = "read"; signed(q) })
		refused("for longer", func(q *Question) { signed(q); q.Until = q.Until.Add(time.Second) })
		refused("before the start", func(q *Question) { signed(q); time.Sleep(time.Second); person.Restart() })
		var used *Question
		c.Shown = json.RawMessage(`{"a":2,"b":1}`) // the same arguments in another spelling
		pass, err := approved(func(q *Question) { q.Shown = json.RawMessage(`{"b":1,"a":2}`); signed(q); used = q })
		if err != nil || pass.ID != used.ID {
			t.Fatalf("%+v, %v", pass, err)
		}
		used.State = Approved // like an attacker that writes to the store
		if pass, err := NewWaiter(m, person.Gate, time.Now, func() {}).AwaitApproval(t.Context(), c); pass.ID != "" {
			t.Errorf("the approval was used twice: %v", err)
		}
	})
}

// TestLeaseIsSigned checks that the signature covers every field of a lease, and that the lease allows no more calls
// than it states.
func TestLeaseIsSigned(t *testing.T) {
	person := presencetest.NewSigner(t)
	l := Lease{ID: "1", Server: "s", Lane: auth.Write, Calls: 2, Left: 2, Given: time.Now(), Until: time.Now().Add(time.Hour), Revision: "r"}
	person.Sign(LeaseClaim(&l))
	for what, change := range map[string]func(*Lease){
		"server": func(l *Lease) { l.Server = "t" }, "tools": func(l *Lease) { l.Tools = "*" }, "lane": func(l *Lease) { l.Lane = auth.Destructive },
		"client": func(l *Lease) { l.Client = "x" }, "actor": func(l *Lease) { l.Actor = "x" }, "calls": func(l *Lease) { l.Calls = 3 },
		"until": func(l *Lease) { l.Until = l.Until.Add(1) }, "given": func(l *Lease) { l.Given = l.Given.Add(1) }, "revision": func(l *Lease) { l.Revision = "" }, "id": func(l *Lease) { l.ID = "2" },
	} {
		other := l
		if change(&other); person.HasUsesLeft(LeaseClaim(&other), 2) {
			t.Errorf("the lease is valid with another %s", what)
		}
	}
	l.Left = 0 // not covered by the signature
	claim := LeaseClaim(&l)
	for i := range 3 {
		if person.SpendUse(claim, int(l.Calls)) != (i < 2) {
			t.Error("the lease does not allow two calls")
		}
	}
}
