package mcpserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
	"mcpproxy/internal/upstream"
	"mcpproxy/internal/upstream/compat"
)

// saying is a server of the given protocol version. The member how of the params determines its answer.
func saying(version string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		id := string(wirejson.Find(body, "id"))
		method, _ := wirejson.String(wirejson.Find(body, "method"))
		how, _ := wirejson.String(wirejson.Find(wirejson.Find(body, "params"), "how"))
		answer := func(status int, contentType, text string) {
			h := w.Header()
			h["Content-Type"] = []string{contentType}
			h["x-Request-ID"] = []string{"r-1"}
			h["X-Two"] = []string{"one", "two"}
			h["Retry-After"] = []string{"7"}
			h["Cache-Control"] = []string{"no-store, private"}
			h["Deprecation-Of-A-Very-Long-Name"] = []string{"söon"}
			h["Connection"] = []string{"keep-alive, X-Hop"}
			for _, not := range []string{"X-Hop", "Set-Cookie", "WWW-Authenticate", "Proxy-Authenticate", "Access-Control-Allow-Origin",
				"Content-Security-Policy", "Strict-Transport-Security", "Alt-Svc", "Server", "Location", "Keep-Alive", "Trailer", "Content-Digest"} {
				h[not] = []string{"leak"}
			}
			w.WriteHeader(status)
			fmt.Fprint(w, text)
		}
		result := func(value string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":` + value + `}` }
		failure := `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":-32042,"message":"no","data":{"n":9007199254740993}}}`
		switch {
		case id == "" && how != "":
			w.WriteHeader(http.StatusTooManyRequests)
		case id == "":
			w.WriteHeader(http.StatusAccepted)
		case method == "initialize" && version != mcp.Modern:
			w.Header().Set("Mcp-Session-Id", "leak")
			answer(200, "application/json", result(`{"protocolVersion":"`+version+`","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`))
		case method == "server/discover" && version == mcp.Modern:
			answer(200, "application/json", result(`{"resultType":"complete","supportedVersions":["`+version+`"],"capabilities":{"tools":{}}}`))
		case method == "tools/list":
			answer(200, "application/json", result(`{"tools":[]}`))
		case method == "ping":
			answer(200, "application/json", result(`{}`))
		case how == "json":
			answer(200, "application/json", result(`{"content":[]}`))
		case how == "events":
			answer(200, "text/event-stream", "data: "+`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`+
				"\n\ndata: "+result(`{"content":[]}`)+"\n\n")
		case strings.HasPrefix(how, "rpc "):
			status := 0
			fmt.Sscan(how[4:], &status)
			answer(status, "application/json", failure)
		case strings.HasPrefix(how, "bare "):
			status := 0
			fmt.Sscan(how[5:], &status)
			answer(status, "text/html", "<h1>no</h1>")
		default:
			answer(404, "application/json", `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32601,"message":"Method not found"}}`)
		}
	})
}

// TestStatusAndHeadersPass: the client gets the status and the relevant headers of the server's response, in every form of
// response.
func TestStatusAndHeadersPass(t *testing.T) {
	for _, version := range []string{mcp.Modern, mcp.Legacy} {
		t.Run(version, func(t *testing.T) {
			address := mcptest.Serve(t, saying(version)).URL
			set := &throughSet{ServerSet: compat.NewServerSet(upstream.Options{})}
			h := newHarness(t)
			t.Cleanup(func() {
				h.srv.Close()
				if err := set.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
			h.srv.At = set.At
			set.ApplySpecs([]upstream.Spec{{Name: "one", Transport: upstream.HTTP, URL: address}})
			send := func(method, how string, session string) (*http.Response, string) {
				t.Helper()
				meta := ""
				if version == mcp.Modern {
					meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.http.URL+"/mcp/servers/one", strings.NewReader(
					fmt.Sprintf(`{"jsonrpc":"2.0","id":"i","method":%q,"params":{"name":"x","protocolVersion":%q,"capabilities":{},"how":%q%s}}`, method, version, how, meta)))
				if err != nil {
					t.Fatal(err)
				}
				for name, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
					mcp.HeaderVersion: version, mcp.HeaderMethod: method, mcp.HeaderName: "x", mcp.HeaderSession: session} {
					if value != "" && (version == mcp.Modern || name[0] != 'M' || name == mcp.HeaderSession) {
						req.Header.Set(name, value)
					}
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				body, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				return resp, string(body)
			}
			check := func(what string, resp *http.Response, body string) {
				t.Helper()
				for name, want := range map[string][]string{"X-Request-Id": {"r-1"}, "X-Two": {"one", "two"}, "Retry-After": {"7"},
					"Cache-Control": {"no-store, private"}, "Deprecation-Of-A-Very-Long-Name": {"söon"}} {
					if got := resp.Header[name]; !slices.Equal(got, want) {
						t.Errorf("%s: %s is %q, want %q", what, name, got, want)
					}
				}
				for name, values := range resp.Header {
					if strings.Contains(strings.Join(values, " "), "leak") {
						t.Errorf("%s: the client gets %s: %s", what, name, values)
					}
				}
			}
			session := ""
			if version != mcp.Modern {
				resp, body := send("initialize", "", "")
				check("initialize", resp, body)
				session = resp.Header.Get(mcp.HeaderSession)
			}
			for _, method := range []string{"tools/call", "prompts/get"} {
				for how, want := range map[string]struct {
					status int
					body   string
				}{
					"json":     {200, `{"jsonrpc":"2.0","id":"i","result":{"content":[]}}`},
					"events":   {200, `data: {"jsonrpc":"2.0","method":"notifications/message"`},
					"rpc 400":  {400, `"error":{"code":-32042,"message":"no","data":{"n":9007199254740993}}`},
					"rpc 404":  {404, `"error":{"code":-32042,"message":"no","data":{"n":9007199254740993}}`},
					"rpc 429":  {429, `"error":{"code":-32042,"message":"no","data":{"n":9007199254740993}}`},
					"rpc 503":  {503, `"error":{"code":-32042,"message":"no","data":{"n":9007199254740993}}`},
					"bare 429": {429, `"error":{`},
					"bare 500": {500, `"error":{`},
					"bare 503": {503, `"error":{`},
				} {
					resp, body := send(method, how, session)
					check(method+" "+how, resp, body)
					if resp.StatusCode != want.status || !strings.Contains(body, want.body) {
						t.Errorf("%s %s: %d %s", method, how, resp.StatusCode, body)
					}
				}
			}
			if session != "" {
				for how, want := range map[string]int{"": http.StatusAccepted, "too much": http.StatusTooManyRequests} {
					if status, body, _ := h.to("/mcp/servers/one", session, `{"jsonrpc":"2.0","method":"vendor/notice","params":{"how":"`+how+`"}}`); status != want {
						t.Errorf("a notification %s: %d %s", how, status, body)
					}
				}
			}
			resp, body := send("no/such", "", session)
			if check("no/such", resp, body); resp.StatusCode != 404 || !strings.Contains(body, `"code":-32601`) {
				t.Errorf("no/such: %d %s", resp.StatusCode, body)
			}
		})
	}
}

// TestNotFoundWithoutASession checks that a 404 means the end of a session only within a session. From a server without
// sessions, or outside a session, it does not.
func TestNotFoundWithoutASession(t *testing.T) {
	server := saying(mcp.Legacy)
	forgetful := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(without{w, mcp.HeaderSession}, r)
	})
	set := &throughSet{ServerSet: compat.NewServerSet(upstream.Options{})}
	h := newHarness(t)
	t.Cleanup(func() {
		h.srv.Close()
		if err := set.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	h.srv.At = set.At
	serveAll(t, h, set)
	hello := strings.Replace(allHello, "2025-11-25", mcp.Legacy, 1)
	for _, c := range []struct {
		what, path, name string
		server           http.Handler
		shared           bool
	}{
		{"no session", "/mcp/servers/one", "x", forgetful, false},
		{"a session that clients share", "/mcp/servers/one", "x", server, true},
		{"one of several servers", "/mcp/all", "one__x", server, false},
	} {
		set.ApplySpecs([]upstream.Spec{{Name: "one", Transport: upstream.HTTP, URL: mcptest.Serve(t, c.server).URL, Shared: c.shared}})
		_, body, header := h.to(c.path, "", hello)
		session := header.Get(mcp.HeaderSession)
		for _, how := range []string{"rpc 404", "bare 404", "rpc 400"} {
			status, answer, _ := h.to(c.path, session, `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"`+c.name+`","how":"`+how+`"}}`)
			if want := map[string]int{"rpc 404": 200, "bare 404": 200, "rpc 400": 400}[how]; session == "" || status != want || !strings.Contains(answer, `"error":{`) {
				t.Errorf("%s, %s: %d %s (%s)", c.what, how, status, answer, body)
			}
		}
	}
}

// without leaves a header line out.
type without struct {
	http.ResponseWriter
	name string
}

func (w without) WriteHeader(status int) {
	w.Header().Del(w.name)
	w.ResponseWriter.WriteHeader(status)
}
