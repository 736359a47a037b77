package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// fakeUpstream is an MCP server over HTTP that lists its definitions, returns the arguments of each call and counts the
// calls.
type fakeUpstream struct {
	*httptest.Server
	calls atomic.Int64
	tools atomic.Pointer[[]json.RawMessage]
	// before, if set, is called with the method before each answer.
	before atomic.Pointer[func(method string)]
}

func startUpstream(t testing.TB, definitions ...string) *fakeUpstream {
	t.Helper()
	u := &fakeUpstream{}
	u.define(definitions...)
	u.Server = httptest.NewServer(u)
	t.Cleanup(u.Close)
	return u
}

// define replaces the tools of the server without a notification.
func (u *fakeUpstream) define(definitions ...string) {
	tools := make([]json.RawMessage, len(definitions))
	for i, d := range definitions {
		tools[i] = json.RawMessage(d)
	}
	u.tools.Store(&tools)
}

func (u *fakeUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Arguments json.RawMessage }
	}
	if r.Method != http.MethodPost || err != nil || json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if before := u.before.Load(); before != nil {
		(*before)(m.Method)
	}
	result := []byte(`{}`)
	switch m.Method {
	case "initialize":
		result = []byte(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`)
	case "tools/list":
		result, _ = json.Marshal(struct {
			Tools []json.RawMessage `json:"tools"`
		}{*u.tools.Load()})
	case "tools/call":
		u.calls.Add(1)
		text, _ := json.Marshal("got " + string(m.Params.Arguments))
		result = fmt.Appendf(nil, `{"content":[{"type":"text","text":%s}],"vendor":{"big":9007199254740993}}`, text)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// config returns a configuration with this server under the name, plus more keys.
func (u *fakeUpstream) config(name, more string) string {
	if more != "" {
		more = "," + more
	}
	return fmt.Sprintf(`{"mcpServers":{%q:{"url":%q}}%s}`, name, u.URL, more)
}
