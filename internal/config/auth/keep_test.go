package auth_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/config/auth"
)

// good reports whether a session is valid.
func good(a *auth.Authenticator, of auth.IssuedWebUISession) bool {
	_, ok := a.SignIns.SessionExpiry(of.Value, []string{of.Cookie})
	return ok
}

// kept returns an Authenticator with the sessions in a data directory.
func kept(t *testing.T, key, dir string) *auth.Authenticator {
	t.Helper()
	return auth.NewAuthenticatorWithSessionFile(key, nil, dir, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

// TestSessionsAreKept checks that after a restart active sessions are valid and ended ones are not.
func TestSessionsAreKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, auth.SessionsFile)
	a := kept(t, key, dir)
	stays, out := a.SignIns.OpenSession(nil), a.SignIns.OpenSession(nil)
	if n := a.SignIns.SignOutBrowser(out.Value, []string{out.Cookie}); n != 1 {
		t.Errorf("%d sessions ended, want 1", n)
	}
	if a = kept(t, key, dir); !good(a, stays) || good(a, out) {
		t.Errorf("%v, %v", good(a, stays), good(a, out))
	}
	now, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{key, stays.Cookie, stays.Value} {
		if bytes.Contains(now, []byte(secret)) {
			t.Error("the file contains a secret")
		}
	}
	for name, bad := range map[string][]byte{
		"empty":   nil,
		"no JSON": []byte("{"),
		"shorter": now[:len(now)-10],
		"later":   []byte(strings.Replace(string(now), `"whole":"2`, `"whole":"3`, 1)),
		"another": []byte(strings.Replace(string(now), `"mac":"`, `"mac":"00`, 1)),
		"no MAC":  []byte(`{"sessions":[],"mac":""}`),
	} {
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(bad, now) || good(kept(t, key, dir), stays) {
			t.Errorf("%s: the session is valid", name)
		}
	}
	if err := os.WriteFile(path, now, 0o600); err != nil {
		t.Fatal(err)
	}
	if good(kept(t, "another key, with as much in it", dir), stays) {
		t.Error("a session is valid under another key")
	}
	if a = kept(t, key, dir); a.SignIns.SignOutEverywhere() != 1 || good(kept(t, key, dir), stays) {
		t.Error("an ended session is valid")
	}
}

// TestKeptSessionsEnd checks that a restart does not extend the lifetime of a session.
func TestKeptSessionsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a := kept(t, key, dir)
		stays, idle := a.SignIns.OpenSession(nil), a.SignIns.OpenSession(nil)
		time.Sleep(6 * time.Hour)
		_, done, ok := a.SignIns.BindRequestToSession(t.Context(), stays.Value, []string{stays.Cookie})
		if done(); !ok {
			t.Error("the session is not valid")
		}
		time.Sleep(6*time.Hour + time.Second)
		a = kept(t, key, dir)
		if at, ok := a.SignIns.SessionExpiry(stays.Value, []string{stays.Cookie}); !ok || time.Until(at) > 6*time.Hour || good(a, idle) {
			t.Errorf("used session: valid %v, until %v; idle session: valid %v", ok, at, good(a, idle))
		}
	})
}

// TestSessionsFromTheFuture checks that a session that was stored while the clock was ahead does not last longer than
// a new one.
func TestSessionsFromTheFuture(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var opened auth.IssuedWebUISession
	logger := slog.New(slog.DiscardHandler)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(24 * time.Hour)
		a := auth.NewAuthenticatorWithSessionFile(key, nil, dir, logger)
		opened = a.SignIns.OpenSession(nil)
		if !good(auth.NewAuthenticatorWithSessionFile(key, nil, dir, logger), opened) {
			t.Error("the session is not stored")
		}
	})
	synctest.Test(t, func(t *testing.T) { // its clock starts at the same time as the clock of the first bubble
		if good(auth.NewAuthenticatorWithSessionFile(key, nil, dir, logger), opened) {
			t.Error("a session from tomorrow is valid")
		}
	})
}

// TestSessionsThatCannotBeStored checks that a session is valid even if the file cannot be written, and that an ended
// session stays ended.
func TestSessionsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	logger := slog.New(slog.DiscardHandler)
	a := auth.NewAuthenticatorWithSessionFile(key, nil, dir, logger)
	opened := a.SignIns.OpenSession(nil)
	if err := os.Mkdir(filepath.Join(dir, "."+auth.SessionsFile+".tmp"), 0o700); err != nil { // blocks the temporary file
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "."+auth.SessionsFile+".tmp", "x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	another := a.SignIns.OpenSession(nil)
	if !good(a, opened) || !good(a, another) {
		t.Error("a session is not valid")
	}
	a.SignIns.SignOutEverywhere()
	if after := auth.NewAuthenticatorWithSessionFile(key, nil, dir, logger); good(after, opened) || good(after, another) {
		t.Error("an ended session is valid again")
	}
}
