package users

import (
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"mcpproxy/internal/config/auth"
	"mcpproxy/internal/mcp/dialpolicy"
	"mcpproxy/internal/testutil/authtest"
)

const address = "https://mcp.example.com"

// world is a Verifier with a real provider, and a clock that the test moves.
type world struct {
	*Verifier
	t        *testing.T
	provider *authtest.Provider
	ahead    atomic.Int64 // nanoseconds that the clock is ahead
	ended    []auth.Actor
}

func newWorld(t *testing.T, change func(*Settings)) *world {
	w := &world{t: t, provider: authtest.StartProvider(t)}
	w.Verifier = New(slog.New(slog.DiscardHandler), func(a auth.Actor) { w.ended = append(w.ended, a) })
	w.Verifier.now = func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }
	w.Apply(w.settings(change))
	return w
}

// settings returns settings with two groups, whose members have different profiles.
func (w *world) settings(change func(*Settings)) *Settings {
	s := &Settings{
		PublicURL: address,
		Issuers:   []Issuer{{URL: w.provider.URL, NameClaim: "email", GroupsClaim: "groups", Check: CheckUserInfo}},
		Rules: []Rule{
			{Groups: []string{"red"}, Profile: "red", Role: auth.RoleUser},
			{Groups: []string{"blue"}, Profile: "blue", Lanes: []string{"read"}, Role: auth.RoleReviewer},
		},
	}
	if change != nil {
		change(s)
	}
	return s
}

func (w *world) token(subject string, more ...func(*authtest.Token)) string {
	token := authtest.Token{Subject: subject, Audience: []string{address + "/mcp"}, Scope: "openid mcp:read mcp:write"}
	for _, change := range more {
		change(&token)
	}
	return w.provider.IssueToken(token)
}

func (w *world) verify(text string) (*auth.LoadedToken, error) {
	access, handled, err := w.VerifyUser(w.t.Context(), "/mcp", text)
	if !handled {
		w.t.Error("the token was not looked at")
	}
	return access, err
}

// reason returns why a token is refused; "" if it is accepted.
func (w *world) reason(text string) string {
	if _, err := w.verify(text); err != nil {
		return err.Error()
	}
	return ""
}

func (w *world) pass(d time.Duration) { w.ahead.Add(int64(d)) }

func TestRulesGiveAccess(t *testing.T) {
	w := newWorld(t, nil)
	w.provider.SetGroups("u-ann", "other", "red")
	w.provider.SetGroups("u-bob", "blue")
	for subject, want := range map[string]string{
		"u-ann": "user:u-ann@example.com 1 red [] read,write",
		"u-bob": "user:u-bob@example.com 2 blue [read] read,write",
	} {
		access, err := w.verify(w.token(subject))
		if err != nil {
			t.Fatal(err)
		}
		u, actor := access.User(), access.Actor()
		got := fmt.Sprintf("%s %d %s %v ", actor, actor.Role, access.Profile, access.Lanes)
		for i, l := range u.Granted.Words() {
			if i > 0 {
				got += ","
			}
			got += l
		}
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if access.HasEnded() || actor.Kind != auth.Agent || actor.Principal() != "user#"+userID(w.provider.URL, subject) {
			t.Errorf("%+v", actor)
		}
	}
	if why := w.reason(w.token("u-eve")); why != "No rule in users gives access to this user" {
		t.Error(why)
	}
}

func TestRuleFits(t *testing.T) {
	ann := identity{issuer: "https://a", subject: "1", email: "Ann@Example.com", groups: []string{"x", "y"}}
	for name, one := range map[string]struct {
		rule Rule
		who  identity
		want bool
	}{
		"no condition":           {Rule{}, ann, true},
		"issuer":                 {Rule{Issuer: "https://a"}, ann, true},
		"another issuer":         {Rule{Issuer: "https://b", Subjects: []string{"1"}}, ann, false},
		"subject":                {Rule{Subjects: []string{"0", "1"}}, ann, true},
		"another subject":        {Rule{Subjects: []string{"11"}}, ann, false},
		"address":                {Rule{Emails: []string{"ann@example.com"}}, ann, true},
		"domain":                 {Rule{Emails: []string{"@example.com"}}, ann, true},
		"the end of a domain":    {Rule{Emails: []string{"@ample.com"}}, ann, false},
		"a domain below":         {Rule{Emails: []string{"@example.com"}}, identity{email: "a@b.example.com"}, false},
		"a domain in the middle": {Rule{Emails: []string{"@example.com"}}, identity{email: "a@example.com@evil.com"}, false},
		"no address":             {Rule{Emails: []string{"@example.com"}}, identity{}, false},
		"group":                  {Rule{Groups: []string{"y"}}, ann, true},
		"part of a group":        {Rule{Groups: []string{"yy", ""}}, ann, false},
		"all conditions":         {Rule{Subjects: []string{"1"}, Groups: []string{"z"}}, ann, false},
	} {
		if got := one.rule.fits(&one.who); got != one.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestNamesOfUsersDiffer: no claim gives a user the name of another one.
func TestNamesOfUsersDiffer(t *testing.T) {
	names := map[string]string{}
	for what, one := range map[string]struct {
		issuer Issuer
		claims claims
	}{
		"address":                     {Issuer{NameClaim: "email"}, claims{"sub": []byte(`"1"`), "email": []byte(`"a@b"`), "email_verified": []byte("true")}},
		"address that is not proven":  {Issuer{NameClaim: "email"}, claims{"sub": []byte(`"2"`), "email": []byte(`"a@b"`)}},
		"subject like an address":     {Issuer{NameClaim: "email"}, claims{"sub": []byte(`"a@b"`)}},
		"name like a subject":         {Issuer{NameClaim: "n"}, claims{"sub": []byte(`"3"`), "n": []byte(`"sub:2"`)}},
		"name like a label":           {Issuer{NameClaim: "n"}, claims{"sub": []byte(`"4"`), "n": []byte(`"x|a@b"`)}},
		"a chosen name":               {Issuer{NameClaim: "n"}, claims{"sub": []byte(`"5"`), "n": []byte(`"ann"`)}},
		"the same name":               {Issuer{NameClaim: "n"}, claims{"sub": []byte(`"6"`), "n": []byte(`"ann"`)}},
		"a trusted address":           {Issuer{NameClaim: "email", TrustEmail: true}, claims{"sub": []byte(`"7"`), "email": []byte(`"a@b"`)}},
		"the same trusted address":    {Issuer{NameClaim: "email", TrustEmail: true}, claims{"sub": []byte(`"8"`), "email": []byte(`"a@b"`)}},
		"the subject":                 {Issuer{NameClaim: "sub"}, claims{"sub": []byte(`"ann"`)}},
		"another issuer":              {Issuer{NameClaim: "email", Label: "x", TrustEmail: true}, claims{"sub": []byte(`"1"`), "email": []byte(`"a@b"`)}},
		"a subject with odd letters":  {Issuer{NameClaim: "email"}, claims{"sub": []byte(`"a b\n"`)}},
		"a subject with other spaces": {Issuer{NameClaim: "email"}, claims{"sub": []byte(`"a  b\n"`)}},
	} {
		who := one.issuer.identity(one.claims)
		name := one.issuer.userName(one.claims, &who)
		if other, twice := names[name]; twice {
			t.Errorf("%s and %s have the name %s", what, other, name)
		}
		names[name] = what
	}
	for name, want := range map[string]string{"a@b": "address", "ann": "the subject", "ann~" + userID("", "5")[:6]: "a chosen name", "a@b~" + userID("", "7")[:6]: "a trusted address"} {
		if names[name] != want {
			t.Errorf("%s has the name %s, want %s", names[name], name, want)
		}
	}
}

// TestRemovalTakesEffect: within 60 seconds of their removal, a group, a token and an account have no access.
func TestRemovalTakesEffect(t *testing.T) {
	for name, remove := range map[string]func(w *world, token string){
		"group": func(w *world, _ string) { w.provider.SetGroups("u-ann") },
		"last group, omitted": func(w *world, _ string) {
			w.provider.OmitEmptyGroups()
			w.provider.SetGroups("u-ann")
		},
		"token":    func(w *world, token string) { w.provider.RevokeToken(token, "u-ann") },
		"rule":     func(w *world, _ string) { w.Apply(w.settings(func(s *Settings) { s.Rules = s.Rules[1:] })) },
		"issuer":   func(w *world, _ string) { w.Apply(w.settings(func(s *Settings) { s.Issuers[0].URL += "/" })) },
		"provider": func(w *world, _ string) { w.provider.Stop() },
	} {
		for _, background := range []bool{false, true} {
			t.Run(fmt.Sprint(name, background), func(t *testing.T) {
				w := newWorld(t, nil)
				w.provider.SetGroups("u-ann", "red")
				token := w.token("u-ann", func(a *authtest.Token) { a.Claims = map[string]any{"groups": []string{"red"}} })
				access, err := w.verify(token)
				if err != nil {
					t.Fatal(err)
				}
				stream := access.Ended()
				if again, _ := w.verify(token); again != access {
					t.Error("the same token gives another access")
				}
				remove(w, token)
				w.pass(CheckInterval)
				if background {
					w.checkTokensInUse(t.Context())
					select {
					case <-stream:
					default:
						t.Error("the stream continues")
					}
				}
				if why := w.reason(token); why == "" {
					t.Error("the token still gives access")
				}
			})
		}
	}
}

// TestCheckKeepsAccess: a check that changes nothing does not end streams; one that changes the group ends them.
func TestCheckKeepsAccess(t *testing.T) {
	w := newWorld(t, nil)
	w.provider.SetGroups("u-ann", "red")
	token := w.token("u-ann")
	before, err := w.verify(token)
	if err != nil {
		t.Fatal(err)
	}
	asked := w.provider.Requests("/userinfo")
	for range 5 {
		w.pass(CheckInterval / 3)
		w.checkTokensInUse(t.Context())
		if now, err := w.verify(token); now != before || err != nil {
			t.Fatal("the access has changed", err)
		}
	}
	if n := w.provider.Requests("/userinfo") - asked; n != 2 {
		t.Errorf("%d checks in 100 seconds", n)
	}
	w.provider.SetGroups("u-ann", "blue")
	w.pass(CheckInterval)
	after, err := w.verify(token)
	if err != nil || after.Profile != "blue" || !before.HasEnded() || len(w.ended) != 1 || w.ended[0] != before.Actor() {
		t.Errorf("%+v %v, ended %v", after, err, w.ended)
	}
	w.provider.Stop()
	w.pass(CheckInterval)
	if _, err := w.verify(token); !errors.Is(err, auth.ErrProviderAway) {
		t.Error(err)
	}
	w.provider.Continue()
	w.pass(CheckInterval)
	if access, err := w.verify(token); err != nil || access.HasEnded() {
		t.Error("the access does not come back:", err)
	}
}

// TestKeysRotate: a new key is read at once; a withdrawn key ends; wrong keys cause few reads.
func TestKeysRotate(t *testing.T) {
	w := newWorld(t, nil)
	w.provider.SetGroups("u-ann", "red")
	old := w.provider
	if why := w.reason(w.token("u-ann")); why != "" {
		t.Fatal(why)
	}
	early := w.token("u-ann", func(a *authtest.Token) { a.Claims = map[string]any{"jti": "early"} })
	old.RotateKey(false)
	w.pass(keysInterval)
	if why := w.reason(w.token("u-ann")); why != "" {
		t.Error("the new key:", why)
	}
	reads := old.Requests("/keys")
	for range 50 {
		if why := w.reason(w.token("u-ann", func(a *authtest.Token) { a.KeyID = "unknown" })); why == "" {
			t.Error("a token with an unknown key is accepted")
		}
	}
	if n := old.Requests("/keys") - reads; n > 1 {
		t.Errorf("%d reads of the keys", n)
	}
	w.pass(keysAge)
	if why := w.reason(early); why != "The signature of the token is not valid" {
		t.Error("a token of the withdrawn key:", why)
	}
}

func TestChecksOff(t *testing.T) {
	w := newWorld(t, func(s *Settings) {
		s.Issuers[0].Check, s.Issuers[0].MaxLifetime = CheckOff, time.Minute
		s.Rules = []Rule{{Role: auth.RoleUser}}
	})
	if why := w.reason(w.token("u-ann")); why != "The token is valid for longer than 1m0s" {
		t.Error(why)
	}
	now := time.Now()
	short := w.token("u-ann", func(a *authtest.Token) {
		a.Claims = map[string]any{"iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}
	})
	if why := w.reason(short); why != "" {
		t.Error(why)
	}
	w.pass(time.Minute + clockSkew + time.Second)
	w.checkTokensInUse(t.Context())
	if why := w.reason(short); why != "The token has expired" {
		t.Error(why)
	}
}

// TestIntrospection: the introspection endpoint gives the groups, and ends the access.
func TestIntrospection(t *testing.T) {
	w := newWorld(t, func(s *Settings) {
		s.Issuers[0].Check, s.Issuers[0].CheckClient, s.Issuers[0].CheckPassword = CheckIntrospection, "gateway", "secret"
	})
	w.provider.SetGroups("u-ann", "red")
	token := w.token("u-ann", func(a *authtest.Token) { a.Audience = append(a.Audience, "gateway") })
	if _, err := w.verify(token); !errors.Is(err, auth.ErrProviderAway) {
		t.Error("without a client:", err)
	}
	w.provider.AddClient("gateway", "secret")
	w.pass(CheckInterval)
	if access, err := w.verify(token); err != nil || access.Profile != "red" {
		t.Fatal(access, err)
	}
	if n := w.provider.Requests("/userinfo"); n != 0 {
		t.Errorf("%d requests for user information", n)
	}
	w.provider.RevokeToken(token, "u-ann")
	w.pass(CheckInterval)
	if why := w.reason(token); why != "The provider no longer accepts the token" {
		t.Error(why)
	}
}

// TestCacheIsBounded: old tokens make room, those without access first, and their streams end.
func TestCacheIsBounded(t *testing.T) {
	v := New(slog.New(slog.DiscardHandler), nil)
	add := func(key uint64, user string, access *auth.LoadedToken) *entry {
		e := &entry{key: key, user: user}
		e.used.Store(int64(key))
		if access != nil {
			e.held.Store(&grant{access: access})
		}
		v.add(e)
		return e
	}
	holds := func(e *entry) bool { return v.tokens[e.key] == e && slices.Contains(v.ofUser[e.user], e) }
	newAccess := func() *auth.LoadedToken {
		return auth.NewUserToken(auth.UserAccess{Expires: time.Now().Add(time.Hour)})
	}
	oldest, next := add(0, "ann", newAccess()), add(1, "ben", newAccess())
	for i := range maxTokens - 3 {
		add(uint64(i)+2, fmt.Sprint(i/maxTokensOfUser), next.held.Load().access)
	}
	refused := add(maxTokens, "eve", nil)
	if add(maxTokens+1, "new", nil); holds(refused) || !holds(oldest) || len(v.tokens) != maxTokens {
		t.Error("a token without access stays, but one with access leaves")
	}
	v.forget(v.tokens[maxTokens+1])
	add(maxTokens+2, "new", newAccess())
	if add(maxTokens+3, "new", newAccess()); holds(oldest) || !oldest.held.Load().access.HasEnded() || !holds(next) || len(v.tokens) != maxTokens {
		t.Error("the token that was not used for the longest time stays")
	}
	for _, user := range []string{"0", "1"} {
		for _, e := range slices.Clone(v.ofUser[user]) {
			v.forget(e)
		}
	}
	for i := range uint64(2 * maxTokensOfUser) {
		add(2*maxTokens+i, "eve", nil)
	}
	if n := len(v.ofUser["eve"]); n != maxTokensOfUser || len(v.tokens) != maxTokens-maxTokensOfUser {
		t.Errorf("%d tokens of one user, %d in all", n, len(v.tokens))
	}
	for _, e := range v.tokens {
		v.forget(e)
	}
	if len(v.ofUser) != 0 {
		t.Errorf("%d users without tokens", len(v.ofUser))
	}
}

// TestOnlyUsableTokensAreCached: a token for another address, and another spelling of a token, take no place.
func TestOnlyUsableTokensAreCached(t *testing.T) {
	w := newWorld(t, nil)
	w.provider.SetGroups("u-ann", "red")
	if why := w.reason(w.token("u-ann", func(a *authtest.Token) { a.Audience = []string{"other"} })); why != "The token was issued for another address" {
		t.Error(why)
	}
	if len(w.tokens) != 0 {
		t.Error("a token for another address is cached")
	}
	text := w.token("u-ann")
	last := text[len(text)-1] // an RSA signature of 256 bytes ends with 4 bits without a meaning
	for _, other := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" {
		if spelled := text[:len(text)-1] + string(other); byte(other) != last && w.reason(spelled) == "" {
			t.Fatal("another spelling of the token is accepted")
		}
	}
	if why := w.reason(text); why != "" || len(w.tokens) != 1 {
		t.Error(why, len(w.tokens))
	}
}

// TestTokenLeavesDuringCheck: a token that leaves the cache before or during its check gets no access that lasts.
func TestTokenLeavesDuringCheck(t *testing.T) {
	var answered func()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answered(); r.URL.Path == "/userinfo" {
			_, _ = w.Write([]byte(`{"sub":"1"}`))
		}
	}))
	defer server.Close()
	for _, during := range []bool{false, true} {
		v := New(slog.New(slog.DiscardHandler), nil)
		s := &Settings{Issuers: []Issuer{{URL: server.URL, NameClaim: "email", Check: CheckUserInfo}}, Rules: []Rule{{Role: auth.RoleUser}}}
		v.Apply(s)
		p := v.providers[server.URL]
		p.verifier, p.read, p.ends.UserInfo = &oidc.IDTokenVerifier{}, v.now(), server.URL+"/userinfo"
		e := &entry{provider: p, claims: claims{"sub": []byte(`"1"`)}, expires: v.now().Add(time.Hour)}
		v.add(e)
		leave := func() {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.forget(e)
		}
		if answered = leave; !during {
			leave()
			answered = func() { t.Error("a token that has left is checked") }
		}
		if g, err := v.refresh(t.Context(), e, CheckInterval); g != nil || !errors.Is(err, auth.ErrProviderAway) {
			t.Errorf("during %v: %+v %v", during, g, err)
		}
		if g := e.held.Load(); g != nil && !g.access.HasEnded() {
			t.Errorf("during %v: the access does not end", during)
		}
	}
}

// TestProviderNamesAddresses: only a provider at a private address may name others, and none names link-local ones.
func TestProviderNamesAddresses(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	here := listener.Addr().String()
	port := here[strings.LastIndexByte(here, ':'):]
	for _, one := range []struct {
		issuer   string
		internal bool
		address  string
		want     bool
	}{
		{"https://login.example.com", false, here, false}, {"https://login.example.com", false, "localhost" + port, false},
		{"https://login.example.com", true, here, true}, {"http://127.0.0.1:1", false, here, true},
		{"https://10.0.0.1", false, here, true}, {"https://localhost", false, "localhost" + port, true},
		{"https://169.254.169.254", true, "169.254.169.254:80", false}, {"http://127.0.0.1:1", false, "10.0.0.1:80", false},
	} {
		p := newProvider(Issuer{URL: one.issuer}, time.Now)
		p.internal.Store(one.internal)
		c, err := p.transport.inner.(*http.Transport).DialContext(t.Context(), "tcp4", one.address)
		if err == nil {
			c.Close()
		} else if _, is := errors.AsType[*dialpolicy.AddressNotAllowedError](err); !is {
			t.Error(err)
		}
		if (err == nil) != one.want {
			t.Errorf("%s from %s: %v", one.address, one.issuer, err)
		}
	}
	for address, want := range map[string]bool{"127.0.0.1:1": false, "10.0.0.1:1": true, "8.8.8.8:1": false} {
		p := newProvider(Issuer{URL: "https://login.example.com"}, time.Now)
		p.noteAddress(httptrace.GotConnInfo{Conn: connTo{address: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address))}})
		if p.internal.Load() != want {
			t.Errorf("metadata from %s: internal %v", address, !want)
		}
	}
}

type connTo struct {
	net.Conn
	address net.Addr
}

func (c connTo) RemoteAddr() net.Addr { return c.address }

// evaluated returns the access by the rules of settings that a token has after these answers.
func evaluated(s *Settings, token claims, said ...claims) (access *auth.LoadedToken) {
	v := New(slog.New(slog.DiscardHandler), nil)
	e := &entry{claims: token, provider: newProvider(s.Issuers[0], v.now), expires: time.Now().Add(time.Hour)}
	for _, one := range said {
		access = v.evaluate(s, e, one, time.Now()).access
	}
	return access
}

// TestAddressIsProvenByItsDocument: the token does not prove the address in an answer, nor an answer that in the token.
func TestAddressIsProvenByItsDocument(t *testing.T) {
	s := &Settings{Issuers: []Issuer{{URL: "https://a", NameClaim: "email", Check: CheckUserInfo}}, Rules: []Rule{{Emails: []string{"@example.com"}, Role: auth.RoleUser}}}
	sub, address, proof := []byte(`"1"`), []byte(`"boss@example.com"`), []byte("true")
	for name, one := range map[string]struct {
		token, said claims
		want        bool
	}{
		"both in the token":               {claims{"sub": sub, "email": address, "email_verified": proof}, claims{"sub": sub}, true},
		"both in the answer":              {claims{"sub": sub}, claims{"sub": sub, "email": address, "email_verified": proof}, true},
		"the proof only in the token":     {claims{"sub": sub, "email": []byte(`"a@b"`), "email_verified": proof}, claims{"sub": sub, "email": address}, false},
		"the proof only in the answer":    {claims{"sub": sub, "email": address}, claims{"sub": sub, "email_verified": proof}, false},
		"the answer withdraws the proof":  {claims{"sub": sub, "email": address, "email_verified": proof}, claims{"sub": sub, "email_verified": []byte("false")}, false},
		"the answer withdraws an address": {claims{"sub": sub, "email": address, "email_verified": proof}, claims{"sub": sub, "email": []byte("null")}, false},
	} {
		if got := evaluated(s, one.token, one.said) != nil; got != one.want {
			t.Errorf("%s: access %v", name, got)
		}
	}
}

// TestOmittedGroups: groups that an answer omits are empty, unless the provider does not say anything about users there.
func TestOmittedGroups(t *testing.T) {
	token := claims{"sub": []byte(`"1"`), "groups": []byte(`["red"]`), "realm": []byte(`{"roles":["red"]}`)}
	bare, name, active := claims{"sub": token["sub"]}, claims{"sub": token["sub"], "name": []byte(`"Ann"`)}, claims{"active": []byte("true"), "scope": []byte(`"x"`)}
	groups := claims{"active": []byte("true"), "groups": token["groups"]}
	for what, one := range map[string]struct {
		check Check
		claim string
		said  []claims
		want  bool
	}{
		"off":                              {CheckOff, "groups", []claims{nil}, true},
		"an answer with sub only":          {CheckUserInfo, "groups", []claims{bare}, true},
		"an answer with a name":            {CheckUserInfo, "groups", []claims{name}, false},
		"an answer without a path":         {CheckUserInfo, "realm.roles", []claims{name}, false},
		"an answer with a path":            {CheckUserInfo, "realm.roles", []claims{{"sub": token["sub"], "realm": token["realm"]}}, true},
		"introspection of the token only":  {CheckIntrospection, "groups", []claims{active}, true},
		"introspection with a name":        {CheckIntrospection, "groups", []claims{name}, false},
		"introspection that had groups":    {CheckIntrospection, "groups", []claims{groups, active}, false},
		"introspection that had groups, 3": {CheckIntrospection, "groups", []claims{groups, active, active}, false},
	} {
		s := &Settings{Issuers: []Issuer{{URL: "https://a", NameClaim: "email", GroupsClaim: one.claim, Check: one.check}}, Rules: []Rule{{Groups: []string{"red"}, Role: auth.RoleUser}}}
		if got := evaluated(s, token, one.said...) != nil; got != one.want {
			t.Errorf("%s: access %v", what, got)
		}
	}
}

// TestAudiencesAreSeparate: no audience is for both REST and an MCP address, whatever the lists of an issuer contain.
func TestAudiencesAreSeparate(t *testing.T) {
	s := &Settings{PublicURL: address}
	i := &Issuer{Audiences: []string{"mcp", address + "/api/v1", address + "/api/v1/"}, APIAudiences: []string{"rest", address + "/mcp", address + "/mcp/", address + "/mcp/all", address + "/mcp/s/x"}}
	for audience, want := range map[string][2]bool{ // at /mcp, at REST
		"mcp": {true, false}, "rest": {false, true}, "other": {},
		address + "/api/v1": {false, true}, address + "/api/v1/": {false, true},
		address + "/mcp": {true, false}, address + "/mcp/": {true, false}, address + "/mcp/all": {}, address + "/mcp/s/x": {},
	} {
		if got := [2]bool{s.acceptsAudience([]string{audience}, i, "/mcp"), s.acceptsAudience([]string{audience}, i, apiPath)}; got != want {
			t.Errorf("%s: %v, want %v", audience, got, want)
		}
	}
}

// BenchmarkVerifiedToken measures what a call with a known token costs.
func BenchmarkVerifiedToken(b *testing.B) {
	v := New(slog.New(slog.DiscardHandler), nil)
	issuer := Issuer{URL: "https://login.example.com", Check: CheckUserInfo}
	s := &Settings{PublicURL: address, Issuers: []Issuer{issuer}}
	v.Apply(s)
	text := fmt.Sprintf("%0900d.a.b", 0)
	e := &entry{text: text, provider: v.providers[issuer.URL], audience: []string{"other", address + "/mcp/all"}, expires: time.Now().Add(time.Hour)}
	e.held.Store(&grant{access: auth.NewUserToken(auth.UserAccess{Granted: auth.AllLanes, Expires: time.Now().Add(time.Hour)}), checked: time.Now().Add(time.Hour), settings: s})
	v.tokens[maphash.String(v.seed, text)] = e
	b.ReportAllocs()
	for b.Loop() {
		if access, _, err := v.VerifyUser(b.Context(), "/mcp/all", text); access == nil || err != nil {
			b.Fatal(err)
		}
	}
}

// TestAudienceOfBoth: a token that names both an MCP address and REST is accepted only at the MCP address.
func TestAudienceOfBoth(t *testing.T) {
	s := &Settings{PublicURL: "https://mcp.example.com"}
	of := &Issuer{Audiences: []string{"mcp"}, APIAudiences: []string{"rest"}}
	for _, mcp := range []string{s.PublicURL + "/mcp", "mcp"} {
		for _, rest := range []string{s.PublicURL + apiPath, "rest"} {
			if !s.acceptsAudience([]string{rest}, of, apiPath) || !s.acceptsAudience([]string{mcp}, of, "/mcp") {
				t.Errorf("%s and %s are not accepted alone", rest, mcp)
			}
			if s.acceptsAudience([]string{mcp, rest}, of, apiPath) || s.acceptsAudience([]string{rest, mcp}, of, apiPath) {
				t.Errorf("a token for %s and %s is accepted for REST", mcp, rest)
			}
			if !s.acceptsAudience([]string{mcp, rest}, of, "/mcp") {
				t.Errorf("a token for %s and %s is not accepted at /mcp", mcp, rest)
			}
		}
	}
}
