//go:build unix

package compat

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/testutil/mcptest"
)

// listAs lists the tools as the modern client of that name.
func (f *fixture) listAs(name string) {
	f.t.Helper()
	params := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
	a, err := f.Relay(f.t.Context(), "s", nil, session.Request{ID: json.RawMessage("1"), Method: mcp.ListTools, Caller: named(name), Params: json.RawMessage(params)})
	if err != nil || a.Error != nil {
		f.t.Fatal(a.Error, err)
	}
}

// Pooled sessions of clients that do not return are replaced by sessions of clients that do.
func TestSpareSessionsAreReplaced(t *testing.T) {
	t.Parallel()
	server := mcptest.New(mcptest.Options{}, mcptest.SampleTools()...)
	f := newFixture(t)
	f.ApplySpecs([]Spec{httpSpec(t, "s", server)})
	f.untilReady(t, "s", 0)
	for n := range maxPooled {
		f.listAs(fmt.Sprint("former ", n))
	}
	f.listAs("present")
	before := len(server.Received(mcp.Initialize))
	for range 3 {
		f.listAs("present")
	}
	if n := len(server.Received(mcp.Initialize)) - before; n != 0 {
		t.Errorf("%d sessions were opened for a client that had one", n)
	}
}

// A session that is about to end is not pooled: a request in it would fail.
func TestEndingSessionIsNotKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{stdioSpec(t, "s", "zoo")})
	f.untilReady(t, "s", 0)
	m := &f.clients("s").modern
	for n := range 5 {
		s, err := m.takeOrOpenSession(t.Context(), nil, fmt.Sprint(n), requestMeta{capabilities: json.RawMessage("{}")}, false, false)
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		m.sessions.addToPool(s)
		if m.sessions.takePooled(fmt.Sprint(n)) != nil {
			t.Error("a session that is going to end is used again")
		}
	}
}

// If a server does not accept the answer to its question, its client can still cancel.
func TestServerIgnoresRefusedQuestion(t *testing.T) {
	t.Parallel()
	var refused atomic.Bool
	server := mcptest.New(mcptest.Options{Events: true}, mcptest.Tool{
		Definition: mcptest.ToolDefinition("ask"),
		Handle: func(c *mcptest.Call) (json.RawMessage, error) {
			_, err := c.SendRequest(mcp.Ping, nil)
			return json.RawMessage(`{"content":[]}`), err
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if r.Method == http.MethodPost && !bytes.Contains(body, []byte(`"method"`)) {
			refused.Store(true)
			cancel() // the client gives up
			<-r.Context().Done()
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		server.ServeHTTP(w, r)
	})
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: mcptest.Serve(t, handler).URL}})
	f.untilReady(t, "s", 0)
	ended := make(chan error, 1)
	go func() {
		_, _, err := f.askModern(ctx, "s", "me", 1, "")
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) || !refused.Load() {
			t.Errorf("%v, refused %v", err, refused.Load())
		}
	case <-time.After(patience):
		t.Error("the request goes on although its client has given up")
	}
}

// A server that supported only the modern protocol and comes back as a legacy one has sessions again.
func TestServerBecomesLegacyAfterRestart(t *testing.T) {
	t.Parallel()
	var now atomic.Pointer[mcptest.Server]
	now.Store(mcptest.New(mcptest.Options{Modern: true}, mcptest.SampleTools()...))
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now.Load().ServeHTTP(w, r)
	})).URL}})
	f.untilReady(t, "s", 0)
	if c := f.converse(t, "s"); c.kind != kindBridged {
		t.Fatal("no session with a modern server")
	}
	now.Store(mcptest.New(mcptest.Options{}, mcptest.SampleTools()...))
	if err := f.Restart("s"); err != nil {
		t.Fatal(err)
	}
	f.untilReady(t, "s", 1)
	if err := f.passOne(t, f.converse(t, "s"), 5*time.Second, "echo", "{}"); err != nil {
		t.Error(err)
	}
}
