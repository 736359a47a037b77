package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/mcp/transport"
	"mcpproxy/internal/problem"
)

// purse is an account with several authorizations. A refused one is replaced by the next.
type purse struct {
	mu      sync.Mutex
	tokens  []string
	refused []string
	broken  error
}

func (p *purse) Authorization(context.Context) (string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.tokens) == 0 {
		return "", p.broken
	}
	return p.tokens[0], p.broken
}

func (*purse) HandleAcceptance(string) {}

func (p *purse) HandleRefusal(_ context.Context, used string, status int, challenge string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refused = append(p.refused, fmt.Sprint(used, " ", status, " ", challenge))
	if len(p.tokens) > 0 && p.tokens[0] == used {
		p.tokens = p.tokens[1:]
	}
	return len(p.tokens) > 0
}

// guarded is a minimal MCP server that requires an authorization.
func guarded(t *testing.T, wanted string, status int) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != wanted || len(r.Header.Values("Authorization")) > 1 {
			w.Header().Add("WWW-Authenticate", `Basic realm="x"`)
			w.Header().Add("WWW-Authenticate", `Bearer error="insufficient_scope"`)
			w.WriteHeader(status)
			return
		}
		answerLeast(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func answerLeast(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	id, _, _ := strings.Cut(strings.TrimPrefix(string(body), `{"jsonrpc":"2.0","id":`), ",")
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case strings.Contains(string(body), `"initialize"`):
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{}}}`, id)
	case strings.Contains(string(body), `"tools/list"`):
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}`, id)
	case strings.Contains(string(body), `"id"`):
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`, id)
	default:
		w.WriteHeader(http.StatusAccepted)
	}
}

func accountSet(t *testing.T, address string, headers map[string]string, p *purse) *Set {
	t.Helper()
	s := NewSet(Options{AccountFor: func(string) transport.ServerAuthorizer { return p }}, noClients)
	t.Cleanup(func() { s.Close(context.Background()) })
	s.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: address, Headers: headers}})
	return s
}

func tryCall(s *Set) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, err := s.Call(ctx, "s", Call{Tool: "t"})
	return err
}

// A refused request is sent again with the account's next authorization.
func TestAccountProves(t *testing.T) {
	server := guarded(t, "Bearer good", http.StatusUnauthorized)
	p := &purse{tokens: []string{"Bearer old", "Bearer good"}}
	if err := tryCall(accountSet(t, server.URL, nil, p)); err != nil {
		t.Fatal(err)
	}
	if len(p.refused) != 1 || p.refused[0] != `Bearer old 401 Basic realm="x", Bearer error="insufficient_scope"` {
		t.Errorf("refused %q", p.refused)
	}
}

func TestLoginNeeded(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		tokens []string
		broken error
		want   problem.Code
	}{
		{"no one has logged in", 401, nil, nil, problem.LoginNeeded},
		{"all are refused", 401, []string{"Bearer a", "Bearer b", "Bearer c"}, nil, problem.LoginNeeded},
		{"more scopes are wanted", 403, []string{"Bearer a"}, nil, problem.LoginNeeded},
		{"the renewal fails", 401, []string{"Bearer a"}, errors.New("no network"), problem.ServerUnavailable},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &purse{tokens: tt.tokens, broken: tt.broken}
			err := tryCall(accountSet(t, guarded(t, "Bearer good", tt.status).URL, nil, p))
			got := problem.From(err)
			if got == nil || got.Code != tt.want {
				t.Fatalf("%v", err)
			}
			if tt.want == problem.LoginNeeded && !strings.Contains(got.Hint, "mcpproxy login s") {
				t.Errorf("hint %q", got.Hint)
			}
		})
	}
}

// A configured authorization takes precedence over the account.
func TestConfiguredAuthorization(t *testing.T) {
	p := &purse{tokens: []string{"Bearer other"}}
	server := guarded(t, "Bearer own", http.StatusUnauthorized)
	if err := tryCall(accountSet(t, server.URL, map[string]string{"authorization": "Bearer own"}, p)); err != nil || p.refused != nil {
		t.Errorf("%v, refused %q", err, p.refused)
	}
	server = guarded(t, "Basic dTpw", http.StatusUnauthorized)
	if err := tryCall(accountSet(t, strings.Replace(server.URL, "//", "//u:p@", 1), nil, p)); err != nil || p.refused != nil {
		t.Errorf("%v, refused %q", err, p.refused)
	}
}

func TestAllowPrivateIsPartOfTheLaunch(t *testing.T) {
	if (Spec{AllowPrivate: true}).LaunchEquals(Spec{}) {
		t.Error("the change of the header is not detected")
	}
}
