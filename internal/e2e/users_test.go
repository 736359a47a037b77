package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/authtest"
	"mcpproxy/internal/testutil/volume"
)

// team is a MCPProxy for users of a real provider.
type team struct {
	*daemon
	provider *authtest.Provider
	base     string
}

// startTeam starts it with a server for each of two groups, and one for both.
func startTeam(t *testing.T, more string) *team {
	s := &team{provider: authtest.StartProvider(t)}
	tools := []string{`{"name":"look","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`, `{"name":"store","inputSchema":{"type":"object"},"annotations":{"destructiveHint":false}}`,
		`{"name":"wipe","inputSchema":{"type":"object"},"annotations":{"destructiveHint":true}}`}
	address := freeAddress(t)
	s.base = "http://" + address
	s.daemon = startDaemonAt(t, address, nil, s.config(more, startUpstream(t, tools...).URL))
	s.awaitTools("redq:look", "redq:wipe", "blueq:look", "bothq:look")
	return s
}

func (s *team) config(more, upstream string) string {
	return fmt.Sprintf(`{
		"public_url": %q, "oidc": {"issuers": [{"issuer": %q}], "public_client_id": "desktop", "request_scopes": ["openid", "email"]}%s,
		"users": [
			{"groups": ["red"], "profile": "red"},
			{"groups": ["blue"], "profile": "blue"},
			{"groups": ["readers"], "lanes": ["read"]},
			{"groups": ["limited"], "calls_per_minute": 2, "calls_in_flight": 1},
			{"groups": ["reviewers"], "role": "reviewer"},
			{"groups": ["admins"], "role": "admin"},
		],
		"profiles": {"red": {"servers": ["redq", "bothq"]}, "blue": {"servers": ["blueq", "bothq"]}},
		"result_limit": 1000,
		"mcpServers": {"redq": {"url": %[4]q, "trust": "auto"}, "blueq": {"url": %[4]q, "trust": "auto"}, "bothq": {"url": %[4]q, "trust": "auto"}},
	}`, s.base, s.provider.URL, more, upstream)
}

// token returns an access token of a user for a path.
func (s *team) token(subject, path string, more ...func(*authtest.Token)) string {
	token := authtest.Token{Subject: subject, Audience: []string{s.base + path}, Scope: "openid mcp:read mcp:write mcp:destructive"}
	for _, change := range more {
		change(&token)
	}
	return s.provider.IssueToken(token)
}

const teamDiscover = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modernRevision + `","io.modelcontextprotocol/clientCapabilities":{}}}}`

// discover sends a harmless request with a token.
func (s *team) discover(path, token string) (int, []byte, http.Header) {
	return scopePost(s.t, s.daemon, token, path, teamDiscover, map[string]string{"Mcp-Protocol-Version": modernRevision, "Mcp-Method": "server/discover"})
}

// call calls a built-in tool in the modern protocol.
func (s *team) call(path, token, tool, arguments string) (int, []byte, http.Header) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"`+modernRevision+`","io.modelcontextprotocol/clientCapabilities":{}}}}`, tool, arguments)
	status, answer, head := scopePost(s.t, s.daemon, token, path, body, map[string]string{"Mcp-Protocol-Version": modernRevision, "Mcp-Method": "tools/call", "Mcp-Name": tool})
	return status, lastEvent(answer), head
}

// api sends a REST request with a token.
func (s *team) api(method, path, token, body string) (int, []byte, http.Header) {
	s.t.Helper()
	req, err := http.NewRequest(method, s.base+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(resp.Body); err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, answer.Bytes(), resp.Header
}

// TestMetadataLeadsToTheProvider: the challenge of each MCP address names a document about exactly this address.
func TestMetadataLeadsToTheProvider(t *testing.T) {
	t.Parallel()
	s := startTeam(t, "")
	for _, path := range []string{"/mcp", "/mcp/all", "/mcp/all/read", "/mcp/servers/redq", "/mcp/servers/none", "/mcp/p/red", "/mcp/p/red/all/write", "/mcp/mcp"} {
		status, _, head := s.discover(path, "")
		if path == "/mcp/mcp" { // another spelling of /mcp is no address
			if status != http.StatusNotFound {
				t.Errorf("%s: %d", path, status)
			}
			continue
		}
		challenge := head.Get("WWW-Authenticate")
		address := regexp.MustCompile(`resource_metadata="([^"]+)"`).FindStringSubmatch(challenge)
		if status != http.StatusUnauthorized || address == nil || address[1] != s.base+"/.well-known/oauth-protected-resource"+path || !strings.HasPrefix(challenge, "Bearer ") {
			t.Errorf("%s: %d %s", path, status, challenge)
			continue
		}
		resp, err := http.Get(address[1])
		if err != nil {
			t.Fatal(err)
		}
		var m map[string]any
		err = json.NewDecoder(resp.Body).Decode(&m)
		resp.Body.Close()
		want := fmt.Sprint(map[string]any{"resource": s.base + path, "authorization_servers": []string{s.provider.URL}, "scopes_supported": []string{"openid", "email", "mcp:read", "mcp:write", "mcp:destructive"},
			"bearer_methods_supported": []string{"header"}, "resource_name": "MCPProxy", "client_id": "desktop"})
		if err != nil || resp.StatusCode != http.StatusOK || fmt.Sprint(m) != want {
			t.Errorf("%s: %d %v %v", path, resp.StatusCode, m, err)
		}
	}
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/", "/.well-known/oauth-protected-resource/ui", "/.well-known/oauth-protected-resource/mcp/x/y/z"} {
		resp, err := http.Get(s.base + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	// The key and the socket stay the owner's.
	if status, _, _ := s.discover("/mcp", s.key()); status != http.StatusOK {
		t.Errorf("the key: %d", status)
	}
}

// TestWithoutUsersNothingChanges: without users there is no metadata, no challenge, and clients need no token.
func TestWithoutUsersNothingChanges(t *testing.T) {
	t.Parallel()
	p := authtest.StartProvider(t)
	d := startDaemon(t, startUpstream(t).config("s", `"public_url":"http://localhost:1"`))
	s := &team{daemon: d, provider: p, base: "http://" + d.address}
	if status, _, _ := s.discover("/mcp", ""); status != http.StatusOK {
		t.Errorf("without a token: %d", status)
	}
	if resp, err := http.Get(s.base + "/.well-known/oauth-protected-resource/mcp"); err != nil || resp.StatusCode != http.StatusNotFound {
		t.Errorf("metadata: %v %v", resp, err)
	}
	status, _, head := s.discover("/mcp", s.token("u-ann", "/mcp"))
	if status != http.StatusUnauthorized || head.Get("WWW-Authenticate") != `Bearer realm="mcpproxy"` {
		t.Errorf("with an access token: %d %v", status, head)
	}
	if n := p.Requests("/keys") + p.Requests("/userinfo"); n != 0 {
		t.Errorf("%d requests to a provider", n)
	}
}

// TestWrongTokens: 60 wrong tokens get 401 or 403 with the right challenge, and none reaches a server.
func TestWrongTokens(t *testing.T) {
	t.Parallel()
	s := startTeam(t, "")
	tenant := authtest.StartProvider(t) // another tenant
	for _, subject := range []string{"u-ann", "u-cut"} {
		s.provider.SetGroups(subject, "red")
		tenant.SetGroups(subject, "red")
	}
	now := time.Now()
	claim := func(name string, value any) func(*authtest.Token) {
		return func(a *authtest.Token) { a.Claims = map[string]any{name: value} }
	}
	good := s.token("u-ann", "/mcp")
	if status, answer, _ := s.discover("/mcp", good); status != http.StatusOK {
		t.Fatalf("the right token: %d %s", status, answer)
	}
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(s.provider.PublicKey())
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	encoded := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	head := func(text string) string { return encoded(text) + "." + parts[1] + "." + parts[2] }
	revoked := s.token("u-ann", "/mcp")
	s.provider.RevokeToken(revoked, "u-ann")
	at := func(path string) func(*authtest.Token) {
		return func(a *authtest.Token) { a.Audience = []string{s.base + path} }
	}
	signed := func(algorithm jose.SignatureAlgorithm, key any) func(*authtest.Token) {
		return func(a *authtest.Token) { a.Algorithm, a.Key = algorithm, key }
	}
	issue := func(change func(*authtest.Token)) string { return s.token("u-ann", "/mcp", change) }
	const invalid, forbidden, scope = `error="invalid_token"`, "", `error="insufficient_scope"`
	type wrong struct {
		token, path, challenge string
	}
	tokens := map[string]wrong{
		"issuer of another tenant":          {tenant.IssueToken(authtest.Token{Subject: "u-ann", Audience: []string{s.base + "/mcp"}, Scope: "mcp:read"}), "/mcp", invalid},
		"another tenant that names ours":    {tenant.IssueToken(authtest.Token{Subject: "u-ann", Audience: []string{s.base + "/mcp"}, Scope: "mcp:read", Claims: map[string]any{"iss": s.provider.URL}}), "/mcp", invalid},
		"issuer with a slash":               {issue(claim("iss", s.provider.URL+"/")), "/mcp", invalid},
		"issuer in capitals":                {issue(claim("iss", strings.ToUpper(s.provider.URL))), "/mcp", invalid},
		"issuer below ours":                 {issue(claim("iss", s.provider.URL+"/realms/x")), "/mcp", invalid},
		"issuer of another port":            {issue(claim("iss", "http://127.0.0.1:1")), "/mcp", invalid},
		"no issuer":                         {issue(claim("iss", nil)), "/mcp", invalid},
		"empty issuer":                      {issue(claim("iss", "")), "/mcp", invalid},
		"issuer that is a list":             {issue(claim("iss", []string{s.provider.URL})), "/mcp", invalid},
		"no audience":                       {issue(claim("aud", nil)), "/mcp", invalid},
		"empty audience":                    {issue(claim("aud", []string{})), "/mcp", invalid},
		"audience is a client":              {issue(claim("aud", "client-1")), "/mcp", invalid},
		"audience is the host":              {issue(claim("aud", s.base)), "/mcp", invalid},
		"audience is the host with a slash": {issue(claim("aud", s.base+"/")), "/mcp", invalid},
		"audience of another host":          {issue(claim("aud", "https://evil.example.com/mcp")), "/mcp", invalid},
		"audience that begins like ours":    {issue(claim("aud", s.base+".evil.example.com/mcp")), "/mcp", invalid},
		"audience that ends like ours":      {issue(claim("aud", "https://evil.example.com/"+s.base+"/mcp")), "/mcp", invalid},
		"audience in capitals":              {issue(claim("aud", s.base+"/MCP")), "/mcp", invalid},
		"audience with a query":             {issue(claim("aud", s.base+"/mcp?x=1")), "/mcp", invalid},
		"replayed at all servers":           {good, "/mcp/all", invalid},
		"replayed at a server":              {good, "/mcp/servers/redq", invalid},
		"replayed at a profile":             {good, "/mcp/p/red", invalid},
		"replayed at a lane":                {issue(at("/mcp/all/read")), "/mcp/all/write", invalid},
		"replayed from a server":            {issue(at("/mcp/servers/redq")), "/mcp", invalid},
		"replayed at another server":        {issue(at("/mcp/servers/redq")), "/mcp/servers/bothq", invalid},
		"for REST":                          {issue(at("/api/v1")), "/mcp", invalid},
		"for a path of REST":                {issue(at("/api/v1/activity")), "/mcp", invalid},
		"expired":                           {issue(claim("exp", now.Add(-time.Minute).Unix())), "/mcp", invalid},
		"expired years ago":                 {issue(claim("exp", 1)), "/mcp", invalid},
		"no expiry":                         {issue(claim("exp", nil)), "/mcp", invalid},
		"expiry in words":                   {issue(claim("exp", "tomorrow")), "/mcp", invalid},
		"expiry beyond all calendars":       {issue(claim("exp", 1e300)), "/mcp", invalid},
		"expiry zero":                       {issue(claim("exp", 0)), "/mcp", invalid},
		"not valid yet":                     {issue(claim("nbf", now.Add(5*time.Minute).Unix())), "/mcp", invalid},
		"begin in words":                    {issue(claim("nbf", "now")), "/mcp", invalid},
		"issued in the future":              {issue(claim("iat", now.Add(5*time.Minute).Unix())), "/mcp", invalid},
		"another key":                       {issue(signed(jose.RS256, other)), "/mcp", invalid},
		"another key with an unknown name":  {issue(func(a *authtest.Token) { a.Key, a.KeyID = other, "unknown" }), "/mcp", invalid},
		"another kind of key":               {issue(signed(jose.ES256, curve)), "/mcp", invalid},
		"HMAC with the public key":          {issue(signed(jose.HS256, public)), "/mcp", invalid},
		"HMAC-512 with the public key":      {issue(signed(jose.HS512, public)), "/mcp", invalid},
		"HMAC with zeros":                   {issue(signed(jose.HS256, make([]byte, 32))), "/mcp", invalid},
		"algorithm none":                    {encoded(`{"alg":"none","typ":"JWT"}`) + "." + parts[1] + ".", "/mcp", invalid},
		"algorithm None":                    {encoded(`{"alg":"None"}`) + "." + parts[1] + ".", "/mcp", invalid},
		"algorithm none with a signature":   {head(`{"alg":"none"}`), "/mcp", invalid},
		"no algorithm":                      {head(`{"typ":"JWT"}`), "/mcp", invalid},
		"another algorithm than the key":    {head(`{"alg":"PS256"}`), "/mcp", invalid},
		"an extension that must be known":   {head(`{"alg":"RS256","crit":["b64"],"b64":false}`), "/mcp", invalid},
		"its own key in the header":         {head(`{"alg":"RS256","jku":"http://127.0.0.1:1/keys","kid":"x"}`), "/mcp", invalid},
		"an ID token":                       {issue(claim("nonce", "n")), "/mcp", invalid},
		"a logout token":                    {issue(func(a *authtest.Token) { a.Type = "logout+jwt" }), "/mcp", invalid},
		"no subject":                        {issue(claim("sub", nil)), "/mcp", invalid},
		"the subject of another user":       {issue(claim("sub", "u-cut")), "/mcp", invalid},
		"a changed body":                    {parts[0] + "." + encoded(`{"iss":"`+s.provider.URL+`","sub":"u-bob","aud":"`+s.base+`/mcp","exp":9999999999}`) + "." + parts[2], "/mcp", invalid},
		"a changed signature":               {parts[0] + "." + parts[1] + "." + strings.Repeat("A", len(parts[2])), "/mcp", invalid},
		"cut":                               {good[:len(good)-10], "/mcp", invalid},
		"two parts":                         {parts[0] + "." + parts[1], "/mcp", invalid},
		"five parts":                        {good + ".x.y", "/mcp", invalid},
		"dots":                              {"..", "/mcp", invalid},
		"no base64":                         {"%.%.%", "/mcp", invalid},
		"no JSON":                           {encoded("x") + "." + encoded("y") + "." + encoded("z"), "/mcp", invalid},
		"huge":                              {parts[0] + "." + strings.Repeat("A", 17<<10) + "." + parts[2], "/mcp", invalid},
		"revoked":                           {revoked, "/mcp", invalid},
		"a user without a rule":             {s.token("u-eve", "/mcp"), "/mcp", forbidden},
		"no scope":                          {issue(func(a *authtest.Token) { a.Scope = "" }), "/mcp", scope},
		"another scope":                     {issue(func(a *authtest.Token) { a.Scope = "openid mcp mcp:readx xmcp:read" }), "/mcp", scope},
		"an MCP client's token at REST":     {good, "/api/v1/activity", invalid},
		"a token of a server at REST":       {issue(at("/mcp/servers/redq")), "/api/v1/pending", invalid},
		"a user without a rule at REST":     {s.token("u-eve", "/api/v1"), "/api/v1/activity", forbidden},
		"revoked at REST":                   {func() string { a := s.token("u-ann", "/api/v1"); s.provider.RevokeToken(a, "u-ann"); return a }(), "/api/v1/activity", invalid},
	}
	if len(tokens) < 60 {
		t.Errorf("%d tokens", len(tokens))
	}
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		w := tokens[name]
		var status int
		var answer []byte
		var head http.Header
		if path, isREST := strings.CutPrefix(w.path, "/api/v1"); isREST {
			status, answer, head = s.api(http.MethodGet, path, w.token, "")
		} else {
			status, answer, head = s.discover(w.path, w.token)
		}
		want, challenge := http.StatusUnauthorized, head.Get("WWW-Authenticate")
		if w.challenge != invalid {
			want = http.StatusForbidden
		}
		resource := strings.TrimSuffix(strings.TrimSuffix(w.path, "/activity"), "/pending")
		switch {
		case status != want || bytes.Contains(answer, []byte(w.token)):
			t.Errorf("%s: %d %s", name, status, answer)
		case w.challenge == forbidden && challenge != "":
			t.Errorf("%s: another token would not help, but the challenge is %s", name, challenge)
		case w.challenge != forbidden && (!strings.Contains(challenge, w.challenge) || !strings.Contains(challenge, `resource_metadata="`+s.base+"/.well-known/oauth-protected-resource"+resource+`"`)):
			t.Errorf("%s: %s", name, challenge)
		case w.challenge == scope && !strings.Contains(challenge, "mcp:read"):
			t.Errorf("%s: %s", name, challenge)
		}
	}
	t.Logf("%d wrong tokens", len(tokens))
	if status, _, _ := s.discover("/mcp", good); status != http.StatusOK {
		t.Errorf("the right token, afterwards: %d", status)
	}
}

// TestStepUp: a call beyond the scopes of the token gets 403 with the scope that it needs, on every surface.
func TestStepUp(t *testing.T) {
	t.Parallel()
	s := startTeam(t, "")
	s.provider.SetGroups("u-ann", "red")
	reader := func(a *authtest.Token) { a.Scope = "mcp:read" }
	for _, c := range []struct{ path, tool, arguments, scopes string }{
		{"/mcp", "call_tool_write", `{"name":"redq:store","args":{}}`, "mcp:read mcp:write"},
		{"/mcp", "call_tool_destructive", `{"name":"redq:wipe","args":{}}`, "mcp:read mcp:destructive"},
		{"/mcp/all", "redq__store", `{}`, "mcp:read mcp:write"},
		{"/mcp/servers/redq", "wipe", `{}`, "mcp:read mcp:destructive"},
	} {
		status, answer, head := s.call(c.path, s.token("u-ann", c.path, reader), c.tool, c.arguments)
		challenge := head.Get("WWW-Authenticate")
		if status != http.StatusForbidden || !strings.Contains(challenge, `error="insufficient_scope", scope="`+c.scopes+`"`) || !bytes.Contains(answer, []byte("INSUFFICIENT_SCOPE")) {
			t.Errorf("%s %s: %d %s %s", c.path, c.tool, status, challenge, answer)
		}
		if status, answer, _ = s.call(c.path, s.token("u-ann", c.path), c.tool, c.arguments); status != http.StatusOK || !bytes.Contains(answer, []byte("got {}")) {
			t.Errorf("%s %s with all scopes: %d %s", c.path, c.tool, status, answer)
		}
	}
	if status, answer, _ := s.call("/mcp", s.token("u-ann", "/mcp", reader), "call_tool_read", `{"name":"redq:look","args":{}}`); status != http.StatusOK || !bytes.Contains(answer, []byte("got {}")) {
		t.Errorf("a read: %d %s", status, answer)
	}
	// A rule without the lane is no matter of scopes.
	s.provider.SetGroups("u-rea", "readers")
	if status, answer, head := s.call("/mcp", s.token("u-rea", "/mcp"), "call_tool_write", `{"name":"redq:store","args":{}}`); status != http.StatusOK || head.Get("WWW-Authenticate") != "" || !bytes.Contains(answer, []byte("OUT_OF_SCOPE")) {
		t.Errorf("a lane that the rule does not give: %d %s", status, answer)
	}
}

// TestUserLimits: calls above a limit get 429 with Retry-After in both protocols and at REST.
func TestUserLimits(t *testing.T) {
	t.Parallel()
	s := startTeam(t, "")
	s.provider.SetGroups("u-lim", "limited")
	token := s.token("u-lim", "/mcp")
	look := `{"name":"redq:look","args":{}}`
	for range 2 {
		if status, answer, _ := s.call("/mcp", token, "call_tool_read", look); status != http.StatusOK {
			t.Fatalf("%d %s", status, answer)
		}
	}
	limited := func(what string, status int, answer []byte, head http.Header) {
		t.Helper()
		if status != http.StatusTooManyRequests || head.Get("Retry-After") == "" || head.Get("Retry-After") == "0" || !bytes.Contains(answer, []byte("RATE_LIMITED")) || !bytes.Contains(answer, []byte("Wait ")) {
			t.Errorf("%s: %d %v %s", what, status, head, answer)
		}
	}
	status, answer, head := s.call("/mcp", token, "call_tool_read", look)
	limited("modern", status, answer, head)
	_, _, head = scopePost(t, s.daemon, token, "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+legacyRevision+`","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`, nil)
	status, answer, head = scopePost(t, s.daemon, token, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"call_tool_read","arguments":`+look+`}}`, map[string]string{"Mcp-Session-Id": head.Get("Mcp-Session-Id"), "Mcp-Protocol-Version": legacyRevision})
	limited("legacy", status, answer, head)
	status, answer, head = s.api(http.MethodPost, "/tools/call", s.token("u-lim", "/api/v1"), `{"tool_variant":"call_tool_read","name":"redq:look","args":{}}`)
	limited("REST", status, answer, head)
	s.provider.SetGroups("u-ann", "red")
	if status, _, _ := s.call("/mcp", s.token("u-ann", "/mcp"), "call_tool_read", look); status != http.StatusOK {
		t.Errorf("another user: %d", status)
	}
	if r := s.newest("user=u-lim@example.com"); r.Metadata.ErrorCode != "RATE_LIMITED" || r.Actor != "user:u-lim@example.com" {
		t.Errorf("%+v", r)
	}
}

// TestRolesAtREST: a user answers for itself, a reviewer for all, an admin may do everything, and an agent nothing.
func TestRolesAtREST(t *testing.T) {
	t.Parallel()
	s := startTeam(t, `, "ask": {"destructive": "ask", "wait": "1s"}`)
	tokens := map[string]string{}
	for subject, group := range map[string]string{"u-ann": "red", "u-abe": "red", "u-rev": "reviewers", "u-adm": "admins"} {
		s.provider.SetGroups(subject, group)
		tokens[subject] = s.token(subject, "/api/v1")
	}
	client := s.token("u-ann", "/mcp")
	hold := func(arguments string) string {
		t.Helper()
		_, answer, _ := s.call("/mcp", client, "call_tool_destructive", `{"name":"redq:wipe","args":`+arguments+`}`)
		found := regexp.MustCompile(`"approval_id":"([^"]+)"`).FindSubmatch(answer)
		if found == nil {
			t.Fatalf("the call is not held: %s", answer)
		}
		return string(found[1])
	}
	want := func(who, method, path, body string, status int) []byte {
		t.Helper()
		got, answer, _ := s.api(method, path, tokens[who], body)
		if got != status {
			t.Errorf("%s %s %s: %d %s, want %d", who, method, path, got, answer, status)
		}
		return answer
	}
	one, two, three := hold(`{"n":1}`), hold(`{"n":2}`), hold(`{"n":3}`)
	for who, n := range map[string]int{"u-ann": 3, "u-abe": 0, "u-rev": 3, "u-adm": 3} {
		if got := bytes.Count(want(who, "GET", "/pending", "", 200), []byte(`"approval_`)) + bytes.Count(want(who, "GET", "/pending", "", 200), []byte(`"state":"waiting"`)); got != n {
			t.Errorf("%s sees %d pending calls, want %d", who, got, n)
		}
	}
	want("u-abe", "GET", "/pending/"+one, "", 404)
	want("u-abe", "POST", "/pending/"+one+"/approve", "", 404)
	want("u-abe", "POST", "/pending/"+one+"/deny", `{"reason":"no"}`, 404)
	want("u-ann", "POST", "/pending/"+one+"/approve", "", 200)
	want("u-rev", "POST", "/pending/"+two+"/approve", "", 200)
	want("u-adm", "POST", "/pending/"+three+"/deny", `{"reason":"no"}`, 200)
	// The token of the client itself gives no right at REST.
	if status, _, _ := s.api("POST", "/pending/"+two+"/approve", client, ""); status != http.StatusUnauthorized {
		t.Errorf("the MCP client's token approves: %d", status)
	}
	for path, text := range map[string]string{`{"n":1}`: `got {\"n\":1}`, `{"n":2}`: `got {\"n\":2}`, `{"n":3}`: "APPROVAL_DENIED"} {
		if _, answer, _ := s.call("/mcp", client, "call_tool_destructive", `{"name":"redq:wipe","args":`+path+`}`); !bytes.Contains(answer, []byte(text)) {
			t.Errorf("%s: %s", path, answer)
		}
	}
	for by, actor := range map[string]string{one: "user:u-ann@example.com", two: "user:u-rev@example.com", three: "user:u-adm@example.com"} {
		if _, answer := s.rest("GET", "/pending/"+by, ""); !bytes.Contains(answer, []byte(`"answered_by":"`+actor+`"`)) {
			t.Errorf("%s", answer)
		}
	}
	// What each role may read and decide.
	for _, c := range []struct {
		method, path, body    string
		user, reviewer, admin int
	}{
		{"GET", "/activity", "", 200, 200, 200},
		{"GET", "/leases", "", 200, 200, 200},
		{"GET", "/approvals", "", 403, 200, 200},
		{"GET", "/servers/redq/review", "", 403, 200, 200},
		{"GET", "/tools", "", 403, 200, 200},
		{"GET", "/servers", "", 403, 403, 200},
		{"GET", "/config", "", 403, 403, 200},
		{"GET", "/tokens", "", 403, 403, 200},
		{"GET", "/secrets", "", 403, 403, 200},
		{"GET", "/sessions", "", 403, 403, 200},
		{"GET", "/activity/summary", "", 403, 403, 200},
		{"GET", "/activity/export", "", 403, 403, 200},
		{"POST", "/servers/redq/restart", "", 403, 403, 200},
		{"POST", "/servers/blueq/disable", "", 403, 403, 200},
	} {
		want("u-ann", c.method, c.path, c.body, c.user)
		want("u-rev", c.method, c.path, c.body, c.reviewer)
		want("u-adm", c.method, c.path, c.body, c.admin)
	}
	// A lease of a user covers its own calls only.
	want("u-ann", "POST", "/leases", `{"server":"blueq","lane":"destructive"}`, 403)
	lease, _ := wirejson.String(wirejson.Find(want("u-ann", "POST", "/leases", `{"server":"redq","lane":"destructive","calls":2}`, 200), "id"))
	if _, answer, _ := s.call("/mcp", client, "call_tool_destructive", `{"name":"redq:wipe","args":{"n":4}}`); !bytes.Contains(answer, []byte("got ")) {
		t.Errorf("with a lease: %s", answer)
	}
	if _, answer, _ := s.call("/mcp", s.token("u-abe", "/mcp"), "call_tool_destructive", `{"name":"redq:wipe","args":{"n":4}}`); !bytes.Contains(answer, []byte("APPROVAL_PENDING")) {
		t.Errorf("with another user's lease: %s", answer)
	}
	want("u-abe", "DELETE", "/leases/"+lease, "", 404)
	want("u-ann", "DELETE", "/leases/"+lease, "", 200)
	// The command line filters by user.
	if code, stdout, stderr := s.cli("activity", "list", "--user", "u-ann@example.com", "--type", "all", "-o", "json"); code != 0 || strings.Contains(stdout, "u-abe@example.com") || !strings.Contains(stdout, `"user:u-ann@example.com"`) {
		t.Errorf("%d %s %s", code, stdout, stderr)
	}
}

// teamUser is a user in the random test.
type teamUser struct {
	subject, group, marker string
	mcp, rest, legacy      string // tokens for /mcp, REST and /mcp, and a session
}

// TestUsersSeeNothingOfOthers: four users in two groups do random operations, also with what belongs to another one.
func TestUsersSeeNothingOfOthers(t *testing.T) {
	t.Parallel()
	s := startTeam(t, `, "ask": {"destructive": "ask", "wait": "1s"}`)
	rng := mathrand.New(mathrand.NewPCG(volume.Seed(t, 3527), 0))
	var users []*teamUser
	for i, subject := range []string{"u-ann", "u-abe", "u-bob", "u-bea"} {
		u := &teamUser{subject: subject, group: []string{"red", "blue"}[i/2], marker: "secret-of-" + subject + "-9f3"}
		s.provider.SetGroups(subject, u.group)
		u.mcp, u.rest = s.token(subject, "/mcp"), s.token(subject, "/api/v1")
		_, _, head := scopePost(t, s.daemon, u.mcp, "/mcp", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"`+legacyRevision+`","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}`, nil)
		if u.legacy = head.Get("Mcp-Session-Id"); u.legacy == "" {
			t.Fatal("no session")
		}
		users = append(users, u)
	}
	owned := map[string]map[string]*teamUser{"handle": {}, "question": {}, "record": {}, "lease": {}}
	keep := func(kind, pattern string, u *teamUser, answer []byte) {
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(answer, 4) {
			if owner := owned[kind][string(m[1])]; owner != nil && owner != u {
				t.Errorf("%s sees the %s of %s", u.subject, kind, owner.subject)
			}
			owned[kind][string(m[1])] = u
		}
	}
	some := func(kind string) (string, *teamUser) {
		all := slices.Sorted(maps.Keys(owned[kind]))
		if len(all) == 0 {
			return "none", nil
		}
		id := all[rng.IntN(len(all))]
		return id, owned[kind][id]
	}
	counts := map[string]int{}
	operate := func(u *teamUser) (what string, answer []byte) {
		server := []string{u.group + "q", "bothq", "redq", "blueq"}[rng.IntN(4)]
		mine := server == u.group+"q" || server == "bothq"
		arguments := fmt.Sprintf(`{"name":"%s:%%s","args":{"marker":%q,"n":%d}}`, server, u.marker, rng.IntN(5))
		var status int
		switch what = []string{"call", "long call", "hold", "search", "list", "read", "session", "activity", "record", "pending", "approve", "deny", "lease", "leases", "revoke"}[rng.IntN(15)]; what {
		case "call":
			_, answer, _ = s.call("/mcp", u.mcp, "call_tool_read", fmt.Sprintf(arguments, "look"))
			if ok := bytes.Contains(answer, []byte("got ")); ok != mine || !mine && !bytes.Contains(answer, []byte("OUT_OF_SCOPE")) {
				t.Errorf("%s at %s: %s", u.subject, server, answer)
			}
		case "long call":
			_, answer, _ = s.call("/mcp", u.mcp, "call_tool_read", fmt.Sprintf(`{"name":"bothq:look","args":{"marker":%q,"long":%q}}`, u.marker, strings.Repeat("x", 3000)))
			keep("handle", `\b([A-Z2-7]{26})\b`, u, answer)
		case "hold":
			_, answer, _ = s.call("/mcp", u.mcp, "call_tool_destructive", fmt.Sprintf(strings.Replace(arguments, server, u.group+"q", 1), "wipe"))
			keep("question", `"approval_id":"([^"]+)"`, u, answer)
		case "search":
			_, answer, _ = s.call("/mcp", u.mcp, "retrieve_tools", `{"query":"look store wipe"}`)
		case "list":
			_, answer, _ = s.call("/mcp", u.mcp, "upstream_servers", `{"operation":"list"}`)
		case "read":
			handle, owner := some("handle")
			_, answer, _ = s.call("/mcp", u.mcp, "read_result", fmt.Sprintf(`{"handle":%q}`, handle))
			if ok := !bytes.Contains(answer, []byte(`"isError":true`)); ok != (owner == u) {
				t.Errorf("%s reads a result of %v: %s", u.subject, owner, answer)
			}
		case "session":
			other := users[rng.IntN(len(users))]
			status, answer, _ = scopePost(t, s.daemon, u.mcp, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, map[string]string{"Mcp-Session-Id": other.legacy, "Mcp-Protocol-Version": legacyRevision})
			if (status == http.StatusOK) != (other == u) {
				t.Errorf("%s in the session of %s: %d", u.subject, other.subject, status)
			}
		case "activity":
			query := []string{"", "?actor=" + url.QueryEscape("user:"+users[rng.IntN(4)].subject+"@example.com"), "?user=" + users[rng.IntN(4)].subject + "@example.com", "?q=secret", "?actor=admin"}[rng.IntN(5)]
			_, answer, _ = s.api("GET", "/activity"+query, u.rest, "")
			keep("record", `"id":"([0-9A-Z]{26})"`, u, answer)
		case "record":
			id, owner := some("record")
			status, answer, _ = s.api("GET", "/activity/"+id, u.rest, "")
			if owner != nil && (status == http.StatusOK) != (owner == u) {
				t.Errorf("%s reads a record of %s: %d", u.subject, owner.subject, status)
			}
		case "pending":
			_, answer, _ = s.api("GET", "/pending", u.rest, "")
		case "approve", "deny":
			id, owner := some("question")
			status, answer, _ = s.api("POST", "/pending/"+id+"/"+what, u.rest, map[string]string{"deny": `{"reason":"no"}`}[what])
			if owner != u && status != http.StatusNotFound || owner == u && status != http.StatusOK && status != http.StatusConflict {
				t.Errorf("%s: %s for %v: %d %s", u.subject, what, owner, status, answer)
			}
		case "lease":
			status, answer, _ = s.api("POST", "/leases", u.rest, fmt.Sprintf(`{"server":%q,"lane":"write","for":"1m","calls":1,"client":%q}`, server, []string{"", "user:" + users[rng.IntN(4)].subject + "@example.com"}[rng.IntN(2)]))
			if status == http.StatusOK {
				keep("lease", `"id":"([^"]+)"`, u, answer)
				if !mine {
					t.Errorf("%s: a lease for %s", u.subject, server)
				}
			}
		case "leases":
			_, answer, _ = s.api("GET", "/leases", u.rest, "")
		case "revoke":
			id, owner := some("lease")
			status, answer, _ = s.api("DELETE", "/leases/"+id, u.rest, "")
			if owner != u && status != http.StatusNotFound {
				t.Errorf("%s revokes a lease of %v: %d", u.subject, owner, status)
			}
		}
		return what, answer
	}
	for range volume.FullOrQuick(10_000, 150) {
		u := users[rng.IntN(len(users))]
		what, answer := operate(u)
		counts[what]++
		for _, other := range users {
			if other != u && (bytes.Contains(answer, []byte(other.marker)) || what == "activity" && bytes.Contains(answer, []byte(other.subject))) {
				t.Errorf("%s: %s shows something of %s: %s", u.subject, what, other.subject, answer)
			}
		}
		if what == "search" || what == "list" || what == "session" || what == "leases" {
			if foreign := map[string]string{"red": "blueq", "blue": "redq"}[u.group]; bytes.Contains(answer, []byte(foreign)) {
				t.Errorf("%s: %s shows a server of another group: %s", u.subject, what, answer)
			}
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%v", counts)
	for kind, all := range owned {
		if len(all) == 0 {
			t.Errorf("no %s was made, so it is not tested", kind)
		}
	}
}
