package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A stop lets calls finish, and refuses with a reason those that do not.
func TestStopRefusesWhatDoesNotFinish(t *testing.T) {
	if testing.Short() {
		t.Skip("a stop waits eight seconds")
	}
	t.Parallel()
	called, release := make(chan struct{}), make(chan struct{})
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.NewDecoder(r.Body).Decode(&m) != nil || m.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		result := `{}`
		switch m.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"slow","version":"1"}}`
		case "tools/list":
			result = `{"tools":[{"name":"hang","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			close(called)
			<-release
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	defer upstream.Close()
	defer close(release)
	d := startDaemon(t, fmt.Sprintf(`{"mcpServers":{"slow":{"url":%q}}}`, upstream.URL))
	d.awaitTools("slow:hang")
	a := d.legacy()
	answered := make(chan toolResult, 1)
	go func() {
		r, err := a.tryCall("call_tool_write", `{"name":"slow:hang"}`)
		if err != nil {
			t.Errorf("the caller was cut off: %v", err)
		}
		answered <- r
	}()
	<-called
	d.stop()
	if r := <-answered; !r.IsError || r.refusal(t).Code != "SERVER_UNAVAILABLE" {
		t.Errorf("the caller got %+v", r)
	}
}
