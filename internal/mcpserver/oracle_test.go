package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	protocol "mcpproxy/internal/mcp"

	"mcpproxy/internal/gate"
	"mcpproxy/internal/mcp/session"
	"mcpproxy/internal/problem"
)

// The client of the official SDK works with both protocols.
func TestOfficialClient(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		t.Run(version, func(t *testing.T) {
			h := newHarness(t)
			h.gw.call = func(_ ctxT, r gate.LaneCall) (gate.CallResult, error) {
				if r.Name == "a:refused" {
					return gate.CallResult{}, problem.New(problem.ServerMismatch, "no", "")
				}
				if r.Meta != nil && r.Say != nil {
					token := string(r.Meta)
					token = token[len(`{"progressToken":`) : len(token)-1]
					for _, n := range []string{"1", "2", "3"} {
						r.Say(session.Event{Method: "notifications/progress", Params: json.RawMessage(`{"progressToken":` + token + `,"progress":` + n + `}`)})
					}
				}
				return gate.CallResult{Result: json.RawMessage(`{"content":[{"type":"text","text":"hello"}],"structuredContent":{"args":` + string(r.Args) + `}}`)}, nil
			}
			progress := make(chan float64, 10)
			client := mcp.NewClient(&mcp.Implementation{Name: "oracle", Version: "1"}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
			})
			transport := &mcp.StreamableClientTransport{Endpoint: h.http.URL + "/mcp", HTTPClient: h.http.Client()}
			cs, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			defer cs.Close()
			if got := cs.InitializeResult(); got.ProtocolVersion != version || got.ServerInfo.Name != "mcpproxy" || got.Capabilities.Tools == nil ||
				got.Capabilities.Resources != nil || got.Capabilities.Prompts != nil || got.Instructions == "" {
				t.Fatalf("%+v", got)
			}
			list, err := cs.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 6 {
				t.Fatalf("%v %+v", err, list)
			}
			p := &mcp.CallToolParams{Name: callToolRead, Arguments: map[string]any{"name": "a:b", "args": map[string]any{"x": 1}}}
			p.SetProgressToken("tok")
			res, err := cs.CallTool(t.Context(), p)
			if err != nil || res.IsError || len(res.Content) != 1 || res.Content[0].(*mcp.TextContent).Text != "hello" {
				t.Fatalf("%v %+v", err, res)
			}
			for want := 1.0; want <= 3; want++ {
				if got := <-progress; got != want {
					t.Errorf("progress %v, want %v", got, want)
				}
			}
			res, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: callToolRead, Arguments: map[string]any{"name": "a:refused"}})
			if err != nil || !res.IsError || res.Content[0].(*mcp.TextContent).Text != "no" {
				t.Fatalf("%v %+v", err, res)
			}
			res, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: retrieveTools, Arguments: map[string]any{"query": "x"}})
			if err != nil || res.IsError || res.StructuredContent == nil {
				t.Fatalf("%v %+v", err, res)
			}
			var bad *jsonrpc.Error
			if _, err = cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "call_tool"}); !errors.As(err, &bad) || bad.Code != -32602 {
				t.Fatalf("%v", err)
			}
			if _, err = cs.ListResources(t.Context(), nil); !errors.As(err, &bad) || bad.Code != -32601 {
				t.Fatalf("%v", err)
			}
			if version != "2026-07-28" {
				if err := cs.Ping(t.Context(), nil); err != nil {
					t.Fatal(err)
				}
				if n := len(h.srv.sessions.byID); n != 1 {
					t.Errorf("%d sessions", n)
				}
			}
			if err := cs.Close(); err != nil {
				t.Fatal(err)
			}
			if n := len(h.srv.sessions.byID); n != 0 {
				t.Errorf("%d sessions after Close", n)
			}
		})
	}
}

// A client of the SDK without a configured version uses the newest one.
func TestOfficialClientNegotiates(t *testing.T) {
	h := newHarness(t)
	client := mcp.NewClient(&mcp.Implementation{Name: "oracle", Version: "1"}, nil)
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.http.URL, HTTPClient: h.http.Client()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	if v := cs.InitializeResult().ProtocolVersion; v != protocol.Modern {
		t.Errorf("%s", v)
	}
}

// Cancelling a call with the SDK reaches the gateway.
func TestOfficialClientCancels(t *testing.T) {
	for _, version := range []string{"2026-07-28", "2025-11-25"} {
		h := newHarness(t)
		entered, left := make(chan struct{}), make(chan struct{})
		h.gw.call = func(ctx ctxT, _ gate.LaneCall) (gate.CallResult, error) {
			close(entered)
			<-ctx.Done()
			close(left)
			return gate.CallResult{}, ctx.Err()
		}
		client := mcp.NewClient(&mcp.Implementation{Name: "oracle", Version: "1"}, nil)
		cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.http.URL, HTTPClient: h.http.Client()},
			&mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-entered
			cancel()
		}()
		if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: callToolRead, Arguments: map[string]any{"name": "a:b"}}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", version, err)
		}
		<-left
		_ = cs.Close()
	}
}

// withKey adds a header to every request.
type withKey struct{ next http.RoundTripper }

func (k withKey) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+testKey)
	return k.next.RoundTrip(r)
}

func TestOfficialClientWithKey(t *testing.T) {
	h := newHarness(t)
	client := mcp.NewClient(&mcp.Implementation{Name: "oracle", Version: "1"}, nil)
	c := &http.Client{Transport: withKey{h.http.Client().Transport}}
	cs, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: h.http.URL, HTTPClient: c}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer cs.Close()
	if _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: callToolRead}); err != nil {
		t.Fatal(err)
	}
	if got := h.gw.lastCall(t).Caller.Actor.String(); got != "admin" {
		t.Error(got)
	}
}
