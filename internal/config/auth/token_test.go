package auth_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"mcpproxy/internal/config/auth"
)

// shelf is a token store in memory.
type shelf struct {
	mu     sync.Mutex
	tokens []auth.Token
	used   int
	err    error
}

func (s *shelf) SaveToken(_ context.Context, t auth.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.tokens = append(s.tokens, t)
	}
	return s.err
}

func (s *shelf) DropToken(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.tokens = slices.DeleteFunc(s.tokens, func(t auth.Token) bool { return t.ID == id })
	}
	return s.err
}

func (s *shelf) SetTokenUsed(context.Context, string, time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used++
	return nil
}

func (s *shelf) LoadTokens(context.Context) ([]auth.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tokens), s.err
}

func (s *shelf) ReplaceTokens(_ context.Context, all []auth.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = slices.Clone(all)
	return s.err
}

// fail makes every operation fail from now on; a nil error ends that.
func (s *shelf) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// kept returns the stored tokens, and how often a last use was stored.
func (s *shelf) kept() ([]auth.Token, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tokens), s.used
}

func request(text string) *http.Request {
	r := httptest.NewRequest("GET", "/", nil)
	if text != "" {
		r.Header.Set("Authorization", "Bearer "+text)
	}
	return r
}

// known starts AgentTokens, and stops them when the test ends.
func known(t *testing.T, s *shelf, ended func(auth.Actor)) *auth.AgentTokens {
	return knownIn(t, t.TempDir(), s, ended)
}

func knownIn(t *testing.T, dir string, s *shelf, ended func(auth.Actor)) *auth.AgentTokens {
	tokens := auth.NewAgentTokens(s, dir, ended, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { tokens.Run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	return tokens
}

func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []string
		s := &shelf{}
		tokens := known(t, s, func(a auth.Actor) { ended = append(ended, a.Name) })
		ctx, a := t.Context(), auth.NewAuthenticator(key, tokens)
		text, made, err := tokens.Create(ctx, auth.Token{Name: "ci", Servers: []string{"s"}, Expires: time.Now().Add(time.Hour)}, nil)
		if err != nil || made.Hash != sha256.Sum256([]byte(text)) || !strings.HasPrefix(text, "mcpp_t_") {
			t.Fatalf("%q, %+v, %v", text, made, err)
		}
		if all, _ := s.kept(); len(all) != 1 || all[0].Hash != made.Hash {
			t.Fatalf("%+v", all)
		}
		if _, _, err := tokens.Create(ctx, auth.Token{Name: "ci"}, nil); !errors.Is(err, auth.ErrTokenExists) {
			t.Errorf("creating a second token of the same name: %v", err)
		}
		actor, held, err := a.IdentifyRequest(request(text))
		if err != nil || actor.Kind != auth.Agent || actor.String() != "agent:ci" || !strings.HasPrefix(actor.Principal(), "agent:ci#") || held == nil {
			t.Fatalf("%+v, %v", actor, err)
		}
		both := request(text)
		both.Header.Set("X-API-Key", text)
		if got := who(a, both); got != actor {
			t.Errorf("the token in both headers identifies %v", got)
		}
		both.Header.Set("X-API-Key", key)
		if got := who(a, both); got.Kind != auth.Nobody {
			t.Errorf("a token and the key together identify %v", got)
		}
		caller := auth.Caller{Actor: actor, Bounds: auth.NewCallerBounds(held, "", nil)}
		if within := caller.Scope(); !within.AllowsServer("s") || within.AllowsServer("t") {
			t.Error("the scope differs from the servers of the token")
		}

		// The token expires.
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := who(a, request(text)); got.Kind != auth.Nobody || !slices.Equal(ended, []string{"ci"}) {
			t.Errorf("the expired token identifies %v; ended: %v", got, ended)
		}
		if within := caller.Scope(); within.AllowsServer("s") {
			t.Error("the scope of an expired token allows a server")
		}
		select {
		case <-held.Ended():
		default:
			t.Error("the Ended channel of an expired token is open")
		}
		if all, _ := tokens.ListAll(ctx); len(all) != 1 || all[0].Used.IsZero() {
			t.Errorf("%+v", all)
		}

		// A token is revoked even if that cannot be stored.
		text, _, _ = tokens.Create(ctx, auth.Token{Name: "two"}, nil)
		two := who(a, request(text))
		s.fail(errors.New("the disk is full"))
		if _, err := tokens.Revoke(ctx, "two"); err == nil {
			t.Error("no error although the revocation was not stored")
		}
		if got := who(a, request(text)); got.Kind != auth.Nobody {
			t.Errorf("the revoked token identifies %v", got)
		}
		s.fail(nil)
		err = tokens.StoreAllAgain(ctx)
		if all, _ := s.kept(); err != nil || len(all) != 1 || all[0].Name != "ci" {
			t.Errorf("a revoked token is stored again: %+v, %v", all, err)
		}
		if _, err := tokens.Revoke(ctx, "two"); err != nil {
			t.Errorf("revoking again: %v", err)
		}
		if _, err := tokens.Revoke(ctx, "two"); !errors.Is(err, auth.ErrNoToken) {
			t.Errorf("revoking a third time: %v", err)
		}
		text, _, _ = tokens.Create(ctx, auth.Token{Name: "two"}, nil)
		if again := who(a, request(text)); again == two || again.Principal() == two.Principal() || again.String() != two.String() {
			t.Errorf("a new token of the same name has the identity %v, the revoked one %v", again, two)
		}
		for range 100 {
			_ = who(a, request(text))
			time.Sleep(10 * time.Second)
		}
		if _, used := s.kept(); used == 0 || used > 5 {
			t.Errorf("its last use was written %d times in a quarter of an hour", used)
		}
	})
}

// TestOldStoreRestoresNoToken checks that a revoked token stays revoked when the store loses the revocation, and that
// no token is accepted if the file cannot be read.
func TestOldStoreRestoresNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, s := t.TempDir(), &shelf{}
		tokens := knownIn(t, dir, s, func(auth.Actor) {})
		var texts []string
		for _, name := range []string{"one", "two", "three"} {
			text, _, err := tokens.Create(t.Context(), auth.Token{Name: name}, nil)
			if err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
		before, _ := s.kept()
		older := &shelf{tokens: before}
		for _, name := range []string{"one", "two"} {
			if _, err := tokens.Revoke(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		a := auth.NewAuthenticator(key, knownIn(t, dir, older, func(auth.Actor) {}))
		for i, want := range []auth.Kind{auth.Nobody, auth.Nobody, auth.Agent} {
			if got := who(a, request(texts[i])); got.Kind != want {
				t.Errorf("token %d identifies %v", i, got)
			}
		}
		if all, _ := older.kept(); len(all) != 1 {
			t.Errorf("the store has %d tokens, want 1", len(all))
		}
		path := filepath.Join(dir, auth.RevokedFile)
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		a = auth.NewAuthenticator(key, knownIn(t, dir, older, func(auth.Actor) {}))
		if who, _, err := a.IdentifyRequest(request(texts[2])); who.Kind != auth.Nobody || !errors.Is(err, auth.ErrTokensUnread) {
			t.Errorf("%v, %v", who, err)
		}
	})
}

// TestTokensThatCannotBeReadYet checks that a request with a token waits for the database for a limited time. Then
// the token is unknown, and the error differs from the error for a wrong token.
func TestTokensThatCannotBeReadYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{err: errors.New("it is locked")}
		tokens := known(t, s, func(auth.Actor) {})
		a, text := auth.NewAuthenticator(key, tokens), "mcpp_t_"+strings.Repeat("0", 64)
		if who, _, err := a.IdentifyRequest(request(text)); who.Kind != auth.Nobody || !errors.Is(err, auth.ErrTokensUnread) {
			t.Errorf("%v, %v", who, err)
		}
		if who, _, err := a.IdentifyRequest(request(key)); who.Kind != auth.Admin || err != nil {
			t.Errorf("the API key identifies %v, %v", who, err)
		}
		if who, _, err := a.IdentifyRequest(request("wrong")); who.Kind != auth.Nobody || err != nil {
			t.Errorf("a text that is no token identifies %v, %v", who, err)
		}
		s.mu.Lock()
		s.tokens, s.err = []auth.Token{{ID: "1", Name: "ci", Hash: sha256.Sum256([]byte(text))}}, nil
		s.mu.Unlock()
		if who, _, err := a.IdentifyRequest(request(text)); who.Name != "ci" || err != nil {
			t.Errorf("%v, %v", who, err)
		}
	})
}

// TestBounds checks that the scope of a caller is evaluated at each use, and that an unknown scope allows nothing.
func TestBounds(t *testing.T) {
	rules := map[string]*auth.ScopeRule{"p": auth.NewScopeRule(auth.ScopeLimits{Profile: "p", Servers: []string{"a"}}), "q": auth.NewScopeRule(auth.ScopeLimits{Profile: "q", Servers: []string{"a", "b"}})}
	profiles := func(name string) *auth.ScopeRule { return rules[name] }
	if auth.NewCallerBounds(nil, "", profiles) != nil {
		t.Error("a caller without token and profile has bounds")
	}
	agent := auth.Caller{Actor: auth.Actor{Kind: auth.Agent}, Bounds: auth.NewCallerBounds(nil, "p", profiles)}
	reaches := func(c auth.Caller, want string) {
		t.Helper()
		got := ""
		for _, server := range []string{"a", "b", "c"} {
			if within := c.Scope(); within.AllowsServer(server) {
				got += server
			}
		}
		if got != want {
			t.Errorf("%+v may use %q, want %q", c, got, want)
		}
	}
	reaches(agent, "a")
	rules["p"] = rules["q"]
	reaches(agent, "ab")
	delete(rules, "p")
	reaches(agent, "")
	reaches(auth.Caller{Actor: auth.Actor{Kind: auth.Agent}}, "abc")
	reaches(auth.Caller{Actor: auth.Actor{Kind: auth.Admin}}, "abc")
	reaches(auth.Caller{}, "")
	reaches(auth.Caller{Bounds: auth.NewCallerBounds(nil, "q", profiles)}, "")
	reaches(auth.Caller{Actor: auth.Actor{Kind: auth.Agent, Name: "ci"}}, "")
}

// FuzzAuthorization checks that, for any header, only the key identifies the admin and only the token identifies its
// agent.
func FuzzAuthorization(f *testing.F) {
	tokens := auth.NewAgentTokens(&shelf{}, f.TempDir(), func(auth.Actor) {}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { tokens.Run(ctx); close(done) }()
	f.Cleanup(func() { cancel(); <-done })
	token, _, err := tokens.Create(ctx, auth.Token{Name: "ci"}, nil)
	if err != nil {
		f.Fatal(err)
	}
	a := auth.NewAuthenticator(key, tokens)
	for _, seed := range []string{"", "Bearer ", "Bearer " + key, "bearer  " + key, "Bearer TOKEN", "BEARER TOKEN ", "Bearer TOKEN TOKEN", "Basic TOKEN", "TOKEN", "Bearer mcpp_t_" + strings.Repeat("0", 64), "Bearer\tTOKEN", "Bearer \x00", "Bearer TOKEN,Bearer TOKEN"} {
		f.Add(seed, "")
		f.Add("", seed)
		f.Add(seed, "TOKEN")
	}
	f.Fuzz(func(t *testing.T, authorization, apiKey string) {
		authorization, apiKey = strings.ReplaceAll(authorization, "TOKEN", token), strings.ReplaceAll(apiKey, "TOKEN", token)
		r := &http.Request{Header: http.Header{}}
		if authorization != "" {
			r.Header["Authorization"] = []string{authorization}
		}
		if apiKey != "" {
			r.Header["X-Api-Key"] = []string{apiKey}
		}
		who, held, err := a.IdentifyRequest(r)
		said := authorization + " " + apiKey
		switch {
		case err != nil:
			t.Fatal(err)
		case who.Kind == auth.Admin && !strings.Contains(said, key), who.Name != "" && !strings.Contains(said, token):
			t.Errorf("%q, %q identifies %v", authorization, apiKey, who)
		case (held != nil) != (who.Name != ""), who.Name != "" && (who.Kind != auth.Agent || who.Name != "ci"):
			t.Errorf("%q, %q identifies %v, %v", authorization, apiKey, who, held)
		case apiKey != "" && who == (auth.Actor{Kind: auth.Agent}):
			t.Errorf("the invalid key %q is ignored", apiKey)
		}
	})
}
