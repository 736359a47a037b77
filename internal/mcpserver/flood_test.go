package mcpserver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/testutil/volume"
)

// from sends a message over the connection with that remote address.
func from(s *Server, remote, session, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	r.RemoteAddr = remote
	r.Header.Set("Content-Type", "application/json")
	if session != "" {
		r.Header.Set(mcp.HeaderSession, session)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

const (
	listBody = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	pingBody = `{"jsonrpc":"2.0","id":3,"method":"ping"}`
)

// TestFloodOfSessions: a client opens thousands of sessions, over one connection or one each, and uses them or not.
// During that time two agents are idle: one has listed its tools, the other has only initialized.
func TestFloodOfSessions(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of sessions")
	}
	flood := volume.FullOrQuick(12_000, 6_000) // more than one, or all that are unused, may have
	for _, tt := range []struct {
		name        string
		connections int
		used        bool // each session of the flood is asked something
		newcomer    bool // the one that has only introduced itself is still there
		most        int  // sessions that the flood holds in the end
	}{
		{"one connection", 1, false, true, maxOfConn},
		{"one connection, used", 1, true, true, maxOfConn},
		{"three connections, used", 3, true, true, 3 * maxOfConn},
		{"a connection for each", flood, false, false, maxUnused},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := plainServer(&fakeGateway{})
			agent := from(s, "127.0.0.1:1", "", initializeBody).Header().Get(mcp.HeaderSession)
			if code := from(s, "127.0.0.1:1", agent, listBody).Code; code != http.StatusOK {
				t.Fatal(code)
			}
			newcomer := from(s, "127.0.0.1:2", "", initializeBody).Header().Get(mcp.HeaderSession)
			for i := range flood {
				remote := fmt.Sprintf("127.0.0.1:%d", 1000+i%tt.connections)
				w := from(s, remote, "", initializeBody)
				if w.Code != http.StatusOK {
					t.Fatalf("session %d: status %d", i, w.Code)
				}
				if tt.used {
					from(s, remote, w.Header().Get(mcp.HeaderSession), listBody)
				}
			}
			if n := len(s.sessions.byID); n > tt.most+2 {
				t.Errorf("%d sessions", n)
			}
			if code := from(s, "127.0.0.1:3", agent, pingBody).Code; code != http.StatusOK {
				t.Errorf("the session of the agent: status %d", code)
			}
			if code := from(s, "127.0.0.1:3", newcomer, pingBody).Code; (code == http.StatusOK) != tt.newcomer {
				t.Errorf("the session of the newcomer: status %d", code)
			}
		})
	}
}

// TestFloodSparesOthers checks that new sessions of one principal end that principal's sessions first, and not those of
// another principal.
func TestFloodSparesOthers(t *testing.T) {
	ss := newSessionTable()
	person, _ := openedBy(ss, auth.Actor{Kind: auth.Admin}, "a")
	for i := range 2 * maxUnused {
		if _, err := openedBy(ss, auth.Actor{Kind: auth.Agent}, fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	if ss.acquireSession(person.id, auth.Actor{Kind: auth.Admin}, "") == nil {
		t.Error("the person's session has ended")
	}
}

// TestSessionsInUseStay: opening sessions never ends one that is in use. If all are in use, no client gets another.
func TestSessionsInUseStay(t *testing.T) {
	ss := newSessionTable()
	agent := auth.Actor{Kind: auth.Agent}
	var busy []string
	for i := range maxSessions {
		s, err := openedBy(ss, agent, fmt.Sprint(i/maxOfConn))
		if err != nil {
			t.Fatal(err)
		}
		ss.acquireSession(s.id, agent, "")
		busy = append(busy, s.id)
	}
	if _, err := openedBy(ss, agent, "another"); err == nil {
		t.Error("no bound")
	}
	for _, id := range busy {
		if ss.acquireSession(id, agent, "") == nil {
			t.Fatal("a session in use has ended")
		}
	}
	for _, id := range busy {
		ss.byID[id].releaseUse(true)
		ss.byID[id].releaseUse(true)
	}
	if n := ss.unused.Len() + ss.order.Len(); n != maxSessions || ss.unused.Len() != 0 {
		t.Errorf("%d in the lists, %d of them unused", n, ss.unused.Len())
	}
	ss.endAll()
	if len(ss.byID)+len(ss.opened)+ss.unused.Len()+ss.order.Len() != 0 {
		t.Error("something is left behind")
	}
}
