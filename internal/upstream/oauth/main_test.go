package oauth

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"mcpproxy/internal/testutil/mcptest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

const patience = time.Minute

// memory is a vault.
type memory struct {
	mu     sync.Mutex
	values map[string][]byte
	fail   bool
}

func (m *memory) Load(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], nil
}

func (m *memory) Save(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fail {
		return errors.New("full")
	}
	if m.values == nil {
		m.values = map[string][]byte{}
	}
	m.values[key] = value
	return nil
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
	return nil
}

// world is an Accounts with one account at a server that requires a login.
type world struct {
	t       *testing.T
	server  *mcptest.LoginServer
	vault   *memory
	keeper  *Accounts
	account *Account
}

func newWorld(t *testing.T, s Settings) *world {
	t.Helper()
	server := mcptest.StartLoginServer(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	return worldOf(t, server, &memory{}, s)
}

func worldOf(t *testing.T, server *mcptest.LoginServer, vault *memory, s Settings) *world {
	t.Helper()
	k := NewAccounts(Options{Vault: vault, Version: "test"})
	t.Cleanup(func() {
		if err := k.Close(context.Background()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	k.Configure([]AccountTarget{{Name: "s", URL: server.URL, Settings: s}})
	return &world{t: t, server: server, vault: vault, keeper: k, account: k.Account("s")}
}

// again returns the same world after a restart.
func (w *world) again(s Settings) *world { return worldOf(w.t, w.server, w.vault, s) }

// ask sends a request as package upstream does, and returns the status.
func (w *world) ask() int {
	w.t.Helper()
	for range 3 {
		auth, err := w.account.Authorization(context.Background())
		if err != nil {
			w.t.Fatal(err)
		}
		r, err := http.NewRequest(http.MethodPost, w.server.URL, nil)
		if err != nil {
			w.t.Fatal(err)
		}
		if auth != "" {
			r.Header.Set("Authorization", auth)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			w.t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode < 400 {
			w.account.HandleAcceptance(auth)
		}
		if resp.StatusCode < 400 || !w.account.HandleRefusal(context.Background(), auth, resp.StatusCode, resp.Header.Get("WWW-Authenticate")) {
			return resp.StatusCode
		}
	}
	w.t.Fatal("the request was refused three times")
	return 0
}

// visit opens a URL as the user's browser.
func visit(t *testing.T, address string) (status int, page string) {
	t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// login logs in and returns the error.
func (w *world) login() error {
	w.t.Helper()
	begun, err := w.account.BeginLogin(context.Background(), false, func(context.Context) {})
	if err != nil {
		return err
	}
	visit(w.t, begun.URL)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for deadline := time.Now().Add(patience); ; {
		p, ok := w.account.Progress()
		switch {
		case !ok || time.Now().After(deadline):
			w.t.Fatalf("the login does not end: %+v", p)
		case p.Phase == Failed:
			return errors.New(p.Err)
		case p.Phase == Done:
			return nil
		}
		<-look.C
	}
}

func (w *world) mustLogin() {
	w.t.Helper()
	if err := w.login(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) failLogin(want string) {
	w.t.Helper()
	if err := w.login(); err == nil || !strings.Contains(err.Error(), want) {
		w.t.Errorf("got %v, want %q", err, want)
	}
}

// last returns the last request to a path.
func (w *world) last(path string) mcptest.AuthRequest {
	w.t.Helper()
	all := w.server.RequestsTo(path)
	if len(all) == 0 {
		w.t.Fatalf("nothing was asked of %s", path)
	}
	return all[len(all)-1]
}

func (w *world) times(path string) int { return len(w.server.RequestsTo(path)) }
