package upstream

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// If a server rejects the requested protocol version but lists it as supported, MCPProxy sends the request again in
// that version, not in an older one.
func TestRefusedVersionThatIsOffered(t *testing.T) {
	for offered, want := range map[string]string{
		`["2026-07-28"]`:              "server/discover server/discover tools/list",
		`["2025-11-25","2025-06-18"]`: "server/discover initialize notifications/initialized tools/list",
	} {
		var mu sync.Mutex
		var asked []string
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if r.Method != http.MethodPost {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			_, rest, _ := strings.Cut(string(body), `"method":"`)
			method, _, _ := strings.Cut(rest, `"`)
			mu.Lock()
			first := len(asked) == 0
			asked = append(asked, method)
			mu.Unlock()
			id, _, _ := strings.Cut(strings.TrimPrefix(string(body), `{"jsonrpc":"2.0","id":`), ",")
			w.Header().Set("Content-Type", "application/json")
			switch {
			case first:
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":%s}}}`, id, offered)
			case method == "server/discover":
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}`, id)
			default:
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				answerLeast(w, r)
			}
		}))
		defer s.Close()
		set := NewSet(Options{}, noClients)
		defer set.Close(context.Background())
		set.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: s.URL}})
		if err := tryCall(set); err != nil {
			t.Errorf("%s: %v", offered, err)
		}
		mu.Lock()
		if got := strings.Join(asked[:len(asked)-1], " "); got != want {
			t.Errorf("%s: requested %s, want %s", offered, got, want)
		}
		mu.Unlock()
	}
}
