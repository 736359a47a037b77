package ops

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/store/activity"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/oauth"
)

// noVault is a credential store that stores nothing.
type noVault struct{}

func (noVault) Load(context.Context, string) ([]byte, error) { return nil, nil }
func (noVault) Save(context.Context, string, []byte) error   { return nil }
func (noVault) Delete(context.Context, string) error         { return nil }

var person = Caller{Actor: auth.Actor{Kind: auth.Admin}, Source: activity.SourceCLI}

func loginWorld(t *testing.T) (*world, *mcptest.LoginServer) {
	t.Helper()
	server := mcptest.StartLoginServer(t, http.NotFoundHandler())
	w := newWorld(t, nil)
	logins := oauth.NewAccounts(oauth.Options{Vault: noVault{}})
	logins.Configure([]oauth.AccountTarget{{Name: "s", URL: server.URL}})
	t.Cleanup(func() { _ = logins.Close(context.Background()) })
	w.gateway.Logins = logins
	return w, server
}

// Only a user can log in and out, and the record names the user.
func TestOnlyUsersLogIn(t *testing.T) {
	w, _ := loginWorld(t)
	ctx := context.Background()
	for _, who := range []auth.Actor{{}, {Kind: auth.Agent}, {Kind: auth.Agent, Name: "ci"}} {
		c := Caller{Actor: who}
		if _, err := w.gateway.LoginToServer(ctx, c, LoginRequest{ServerRef: ServerRef{Name: "s"}}); problem.From(err).Code != problem.Forbidden {
			t.Errorf("%s may log in: %v", who, err)
		}
		if _, err := w.gateway.LogoutFromServer(ctx, c, ServerRef{Name: "s"}); problem.From(err).Code != problem.Forbidden {
			t.Errorf("%s may log out: %v", who, err)
		}
	}
	if _, err := w.gateway.LoginProgress(ctx, Caller{}, ServerRef{Name: "s"}); problem.From(err).Code != problem.NotFound {
		t.Errorf("progress without a login: %v", err)
	}
	w.Catalog.StateChanged(upstream.State{Name: "s", Phase: upstream.Ready, Since: time.Now().Add(time.Hour)}) // it reconnects at once
	w.Catalog.Publish()
	begun, err := w.gateway.LoginToServer(ctx, person, LoginRequest{ServerRef: ServerRef{Name: "s"}})
	if err != nil || begun.State != "waiting" || !strings.HasPrefix(begun.URL, "http://127.0.0.1:") || begun.ExpiresAt == nil {
		t.Fatalf("%+v %v", begun, err)
	}
	resp, err := http.Get(begun.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for range look.C {
		l, err := w.gateway.LoginProgress(ctx, Caller{}, ServerRef{Name: "s"})
		if err != nil || l.State == "failed" {
			t.Fatalf("%+v %v", l, err)
		}
		if l.State == "done" {
			if l.URL != "" {
				t.Error("the address is still shown after the login")
			}
			break
		}
	}
	if err := w.gateway.Logins.Close(ctx); err != nil { // waits for the actions that follow a login
		t.Fatal(err)
	}
	if len(w.Appended) != 1 || w.Appended[0].Metadata.Action != "login" || w.Appended[0].Actor != "admin" || w.Appended[0].ServerName != "s" {
		t.Errorf("recorded: %+v", w.Appended)
	}
	if got := strings.Join(w.Events, " "); !strings.Contains(got, "restart") {
		t.Errorf("the server was not reconnected: %s", got)
	}
}

func TestNeedsLoginIsShown(t *testing.T) {
	w, _ := loginWorld(t)
	w.gateway.About = DaemonInfo{LoadedToolBytes: func() int { return 0 }, Surfaces: func() []Surface { return nil }, ConfigError: func() error { return nil },
		NeedsRestart: func() []string { return nil }, Warnings: func() []string { return []string{"another"} }}
	shown := func(phase upstream.Phase) ServerView {
		w.Catalog.StateChanged(upstream.State{Name: "s", Phase: phase})
		w.Catalog.Publish()
		v, err := w.gateway.Server(t.Context(), person, ServerRef{Name: "s"})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := shown(upstream.Failed); v.NeedsLogin || v.State != "failed" {
		t.Errorf("before the server requires a login: %+v", v)
	}
	w.gateway.Logins.Account("s").HandleRefusal(context.Background(), "", 401, "Bearer")
	if v := shown(upstream.Failed); !v.NeedsLogin || v.State != "needs_login" {
		t.Errorf("%+v", v)
	} else if l := v.Login; l == nil || l.State != "needed" || l.Reason == "" || l.Remedy != "mcpproxy login s" {
		t.Errorf("the login: %+v", l)
	}
	if v := shown(upstream.Ready); !v.NeedsLogin || v.State != "ready" {
		t.Errorf("a ready server that requires a login for more: %+v", v)
	}
	if got := w.gateway.loginWarnings(); len(got) != 1 || !strings.Contains(got[0], "mcpproxy login s") {
		t.Errorf("warnings: %q", got)
	}
	for _, name := range []string{"nobody", "s"} {
		if name == "s" {
			w.gateway.Logins = nil
		}
		if _, err := w.gateway.LoginToServer(context.Background(), person, LoginRequest{ServerRef: ServerRef{Name: name}}); err == nil {
			t.Errorf("a login to %s started", name)
		}
	}
}
