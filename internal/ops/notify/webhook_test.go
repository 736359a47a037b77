package notify

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
)

// receiver is a webhook that answers with the next status, or 200, and stores the requests.
type receiver struct {
	*httptest.Server
	mu      sync.Mutex // guards the fields below
	status  []int
	headers []http.Header
	bodies  []string
}

func newReceiver(t *testing.T, status ...int) *receiver {
	r := &receiver{status: status}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, _ := io.ReadAll(q.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.headers, r.bodies = append(r.headers, q.Header), append(r.bodies, string(body))
	if len(r.status) > 0 {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(r.status[0])
		r.status = r.status[1:]
	}
}

var someMessage = newMessage([]record{{Item{Event: config.NotifyCallHeld, Server: "github", Tool: "delete_repo"}, ""}}, 0, "http://127.0.0.1:8080/ui/")

func TestSignature(t *testing.T) {
	r := newReceiver(t)
	n := newTestNotifier(config.DefaultConfig())
	for _, w := range []config.Webhook{{URL: r.URL, Secret: "s3cret"}, {URL: r.URL}} {
		if err := n.deliver(t.Context(), w, someMessage, nil); err != nil {
			t.Fatal(err)
		}
	}
	at := r.headers[0].Get("MCPProxy-Timestamp")
	if seconds, err := strconv.ParseInt(at, 10, 64); err != nil || time.Since(time.Unix(seconds, 0)).Abs() > time.Hour {
		t.Errorf("timestamp %q", at)
	}
	if got := r.headers[0].Get("MCPProxy-Signature"); got != sign("s3cret", at, []byte(r.bodies[0])) {
		t.Errorf("signature %q", got)
	}
	// Computed with openssl: printf '1700000000.{}' | openssl dgst -sha256 -hmac key
	if got := sign("key", "1700000000", []byte("{}")); got != "sha256=9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae" {
		t.Errorf("signature %q", got)
	}
	if r.headers[1]["Mcpproxy-Signature"] != nil {
		t.Error("a request without a secret is signed")
	}
	var m Message
	if err := json.Unmarshal([]byte(r.bodies[0]), &m); err != nil || m.ID != someMessage.ID || len(m.Items) != 1 || m.Items[0] != someMessage.Items[0] || m.Link == "" || m.Text == "" {
		t.Errorf("got %s, %v", r.bodies[0], err)
	}
}

func TestFormats(t *testing.T) {
	for format, want := range map[config.WebhookFormat]string{
		config.WebhookSlack: `{"text":"A call waits for your approval: github:delete_repo.\n<http://127.0.0.1:8080/ui/approvals|Open MCPProxy>"}`,
		config.WebhookTeams: `{"type":"message","attachments":[{"contentType":"application/vnd.microsoft.card.adaptive","content":{"type":"AdaptiveCard","version":"1.4",` +
			`"body":[{"type":"RichTextBlock","inlines":[{"type":"TextRun","text":"A call waits for your approval: github:delete_repo."}]}],` +
			`"actions":[{"type":"Action.OpenUrl","title":"Open MCPProxy","url":"http://127.0.0.1:8080/ui/approvals"}]}}]}`,
	} {
		if got, err := encodeMessage(someMessage, format); string(got) != want || err != nil {
			t.Errorf("%s: %s, %v", format, got, err)
		}
	}
}

// A request is repeated, with the same id, only after a failure that may pass.
func TestRetries(t *testing.T) {
	pauses := []time.Duration{time.Millisecond, time.Millisecond}
	for _, c := range []struct {
		status   []int
		requests int
		err      string
	}{
		{[]int{503, 429}, 3, ""}, {[]int{500, 502, 503, 200}, 3, "it answers with HTTP status 503"},
		{[]int{404}, 1, "it answers with HTTP status 404"}, {[]int{307}, 1, "it answers with HTTP status 307"}, // not followed
	} {
		r := newReceiver(t, c.status...)
		err := newTestNotifier(config.DefaultConfig()).deliver(t.Context(), config.Webhook{URL: r.URL + "/s3cret-path"}, someMessage, pauses)
		if got := errorText(err); got != c.err || len(r.bodies) != c.requests {
			t.Errorf("%v: %d requests, %q", c.status, len(r.bodies), got)
		}
		for _, body := range r.bodies {
			if body != r.bodies[0] {
				t.Errorf("%v: another body: %s", c.status, body)
			}
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A test notification tells which receivers failed, and why, without the secrets in a URL.
func TestTestNotification(t *testing.T) {
	fine, gone := newReceiver(t), newReceiver(t)
	gone.Close()
	n := newTestNotifier(parseConfig(t, `[{"url": "`+fine.URL+`", "events": ["call.held"]}, {"url": "`+gone.URL+`/s3cret-path"}, {"url": "http://169.254.169.254/s3cret-path"}, {"url": "${keyring:hook}"}]`))
	out, err := n.SendTest(t.Context(), ops.Caller{}, ops.Nothing{})
	if err != nil || len(out.Receivers) != 4 {
		t.Fatalf("%+v, %v", out, err)
	}
	for i, want := range []struct{ receiver, err string }{
		{"webhook 1 (127.0.0.1)", ""}, {"webhook 2 (127.0.0.1)", "connection refused"}, {"webhook 3 (169.254.169.254)", "is not asked"}, {"webhook 4", "no secret"},
	} {
		got := out.Receivers[i]
		if got.Receiver != want.receiver || !strings.Contains(got.Error, want.err) || (want.err == "") != (got.Error == "") || strings.Contains(got.Error, "s3cret") {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if warnings := n.Warnings(); len(warnings) != 3 || strings.Contains(strings.Join(warnings, ""), "s3cret") {
		t.Errorf("warnings %q", warnings)
	}
	if len(fine.bodies) != 1 || !strings.Contains(fine.bodies[0], `"text":"This is a test of MCPProxy's notifications."`) {
		t.Errorf("got %q", fine.bodies)
	}
}
