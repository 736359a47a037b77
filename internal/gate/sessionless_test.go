package gate

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestAnonymousSessions checks that the record separates clients without a session by their identity, until they have
// been inactive for half an hour.
func TestAnonymousSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cs := newSessionIDAssigner()
		a := cs.sessionIDFor("agent", "cursor", "1")
		if a == "" || len(a) > 32 {
			t.Fatalf("id %q", a)
		}
		for _, other := range []string{cs.sessionIDFor("admin", "cursor", "1"), cs.sessionIDFor("agent", "cursor", "2"), cs.sessionIDFor("agent", "claude", "1"), cs.sessionIDFor("agent", "", "")} {
			if other == a {
				t.Error("two clients share an id")
			}
		}
		for range 3 {
			time.Sleep(29 * time.Minute)
			if cs.sessionIDFor("agent", "cursor", "1") != a {
				t.Error("a new id although the client was active")
			}
		}
		time.Sleep(31 * time.Minute)
		b := cs.sessionIDFor("agent", "cursor", "1")
		if b == a {
			t.Error("the same id although the client was inactive")
		}
		for i := range 3 * maxSessionless {
			cs.sessionIDFor("agent", fmt.Sprint(i), "")
		}
		if len(cs.byKey) > maxSessionless {
			t.Errorf("%d sessions", len(cs.byKey))
		}
	})
}
