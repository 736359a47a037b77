//go:build unix

package upstream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/testutil/mcptest"
)

// appServer lists the tool "app" only while MCPProxy declares MCP Apps: in initialize, or in the request if it is a
// modern server. A call of "slow" lasts until the channel is closed.
func appServer(t *testing.T, modern bool) (s *mcptest.Server, url string, slow chan struct{}) {
	slow = make(chan struct{})
	tools := []mcptest.Tool{{Definition: mcptest.ToolDefinition("slow"), Handle: func(*mcptest.Call) (json.RawMessage, error) {
		<-slow
		return json.RawMessage(`{"content":[]}`), nil
	}}}
	s = mcptest.New(mcptest.Options{Modern: modern, NoStream: true}, tools...)
	var mu sync.Mutex
	declared := false
	return s, mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		decides := `"initialize"`
		if modern {
			decides = `"tools/list"`
		}
		if bytes.Contains(body, []byte(`"method":`+decides)) {
			mu.Lock()
			if now := bytes.Contains(body, []byte(mcp.AppsCapabilities)); now != declared {
				declared = now
				s.SetTools(append(slices.Clone(tools), mcptest.Tool{Definition: mcptest.ToolDefinition("app")})[:map[bool]int{false: 1, true: 2}[now]]...)
			}
			mu.Unlock()
		}
		s.ServeHTTP(w, r)
	})).URL, slow
}

// TestAppsAreDeclared: once MCPProxy declares MCP Apps, each server lists the tools that it has with them. A modern
// server stays connected. A legacy one is restarted, but not while a call is in flight.
func TestAppsAreDeclared(t *testing.T) {
	t.Parallel()
	for _, modern := range []bool{false, true} {
		t.Run(fmt.Sprintf("modern %v", modern), func(t *testing.T) {
			t.Parallel()
			s, url, slow := appServer(t, modern)
			f := newFixture(t)
			f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: url}})
			f.untilReady(t, "s", 0)
			if got := f.listedTools("s"); !slices.Equal(got, []string{"slow"}) {
				t.Fatalf("it lists %v before", got)
			}
			called := make(chan error, 1)
			go func() {
				_, err := f.call("s", "slow", "{}")
				called <- err
			}()
			for len(s.Received(mcp.CallTool)) == 0 {
				if err := t.Context().Err(); err != nil {
					t.Fatal(err)
				}
			}
			f.DeclareApps()
			if modern {
				f.until(t, "it lists the tool", func() bool { return slices.Equal(f.lastTools("s"), []string{"slow", "app"}) })
			}
			close(slow)
			if err := <-called; err != nil {
				t.Errorf("the call in flight: %v", err)
			}
			f.until(t, "it lists the tool", func() bool { return slices.Equal(f.lastTools("s"), []string{"slow", "app"}) })
			f.DeclareApps() // again, without an effect
			f.must("s", "app", "{}")
			if state, _ := f.State("s"); (state.Restarts == 0) != modern {
				t.Errorf("%d restarts", state.Restarts)
			}
			if n := len(s.Received(mcp.CallTool)); n != 2 {
				t.Errorf("%d calls were sent, want 2", n)
			}
		})
	}
}

// TestAppsAreDeclaredFromTheStart: MCPProxy declares MCP Apps in its first connection if it did so before a restart.
func TestAppsAreDeclaredFromTheStart(t *testing.T) {
	t.Parallel()
	_, url, slow := appServer(t, false)
	close(slow)
	f := newFixture(t, func(o *Options) { o.DeclareApps = true })
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: url}})
	f.untilReady(t, "s", 0)
	if got := f.listedTools("s"); !slices.Equal(got, []string{"slow", "app"}) {
		t.Errorf("it lists %v", got)
	}
}
