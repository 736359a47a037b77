//go:build unix

package upstream

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/testutil/mcptest"
)

// oddServer is a conforming server over HTTP whose answers are changed.
func oddServer(t *testing.T, opt mcptest.Options, change func(m *wirejson.Message, w http.ResponseWriter, status int, header http.Header, body []byte)) string {
	opt.NoStream = true
	s := mcptest.New(opt, mcptest.Tool{Definition: mcptest.ToolDefinition("a")}, mcptest.Tool{Definition: mcptest.ToolDefinition("b")},
		mcptest.Tool{Definition: mcptest.ToolDefinition("c")}, mcptest.Tool{Definition: mcptest.ToolDefinition("d")})
	return mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		m, _ := wirejson.ParseServerMessage(body)
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		change(&m, w, rec.Code, rec.Header(), rec.Body.Bytes())
	})).URL
}

func pass(w http.ResponseWriter, status int, header http.Header, body []byte) {
	for name, values := range header {
		w.Header()[name] = values
	}
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func zipped(body []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(body)
	_ = z.Close()
	return b.Bytes()
}

// TestOddServers: servers that deviate from the protocol in ways seen in practice. Their tools are listed, and a call
// works. If the list may be incomplete, there is a warning.
func TestOddServers(t *testing.T) {
	t.Parallel()
	answer := func(m *wirejson.Message, result string) []byte {
		return wirejson.AppendResult(nil, m.ID, json.RawMessage(result))
	}
	tools := func(names ...string) string {
		var all []string
		for _, name := range names {
			all = append(all, mcptest.ToolDefinition(name))
		}
		return `{"tools":[` + strings.Join(all, ",") + `]`
	}
	list := func(page func(params string) string) func(*wirejson.Message, http.ResponseWriter, int, http.Header, []byte) {
		return func(m *wirejson.Message, w http.ResponseWriter, status int, h http.Header, body []byte) {
			if m.Method == "tools/list" {
				status, body = 200, answer(m, page(string(m.Params)))
			}
			pass(w, status, h, body)
		}
	}
	type change = func(*wirejson.Message, http.ResponseWriter, int, http.Header, []byte)
	each := func(f func(header http.Header, body []byte) []byte) change {
		return func(_ *wirejson.Message, w http.ResponseWriter, status int, h http.Header, body []byte) {
			if len(body) > 0 && status == 200 {
				body = f(h, body)
			}
			pass(w, status, h, body)
		}
	}
	for name, c := range map[string]struct {
		opt    mcptest.Options
		change change
		odd    string
	}{
		"the same cursor on each page": {change: list(func(string) string { return tools("a", "b", "c", "d") + `,"nextCursor":"8"}` }), odd: "the same next page"},
		"cursors in a circle": {change: list(func(params string) string {
			if strings.Contains(params, `"x"`) {
				return tools("c", "d") + `,"nextCursor":"y"}`
			}
			return tools("a", "b") + `,"nextCursor":"x"}`
		}), odd: "the same next page"},
		"a number as a cursor": {change: list(func(params string) string {
			if strings.Contains(params, `"cursor":2`) {
				return tools("c", "d") + `}`
			}
			return tools("a", "b") + `,"nextCursor":2}`
		}), odd: "by a number"},
		"a cursor that it rejects": {change: func(m *wirejson.Message, w http.ResponseWriter, status int, h http.Header, body []byte) {
			switch {
			case m.Method == "tools/list" && m.Params != nil && strings.Contains(string(m.Params), "cursor"):
				status, body = 200, []byte(`{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32602,"message":"Invalid cursor"}}`)
			case m.Method == "tools/list":
				status, body = 200, answer(m, tools("a", "b", "c", "d")+`,"nextCursor":"9"}`)
			}
			pass(w, status, h, body)
		}, odd: "rejects its own cursor"},
		"null and no cursor": {change: list(func(string) string { return tools("a", "b", "c", "d") + `,"nextCursor":null}` })},
		"an odd cursor":      {change: list(func(string) string { return tools("a", "b", "c", "d") + `,"nextCursor":{"p":1}}` }), odd: "neither a string nor a number"},
		"the draft":          {opt: mcptest.Options{Protocol: "2024-10-07"}, change: each(func(_ http.Header, b []byte) []byte { return b })},
		"ids as text": {change: func(m *wirejson.Message, w http.ResponseWriter, status int, h http.Header, body []byte) {
			if m.ID != nil && status == 200 {
				body = bytes.Replace(body, append([]byte(`"id":`), m.ID...), []byte(`"id":"`+string(m.ID)+`"`), 1)
			}
			pass(w, status, h, body)
		}},
		"a byte order mark": {change: each(func(_ http.Header, b []byte) []byte { return append([]byte("\ufeff"), b...) })},
		"gzip":              {change: each(func(h http.Header, b []byte) []byte { h.Set("Content-Encoding", "gzip"); return zipped(b) })},
		"gzip of events":    {opt: mcptest.Options{Events: true}, change: each(func(h http.Header, b []byte) []byte { h.Set("Content-Encoding", "x-gzip"); return zipped(b) })},
		"a mark in events": {opt: mcptest.Options{Events: true}, change: each(func(_ http.Header, b []byte) []byte {
			return append([]byte("\ufeff"), bytes.Replace(b, []byte("data: "), []byte("data: \ufeff"), 1)...)
		})},
		"no capabilities":   {opt: mcptest.Options{NoTools: true}, change: each(func(_ http.Header, b []byte) []byte { return b }), odd: "does not declare the capability"},
		"null capabilities": {opt: mcptest.Options{Capabilities: `null`}, change: each(func(_ http.Header, b []byte) []byte { return b }), odd: "does not declare the capability"},
		"modern, no capabilities": {opt: mcptest.Options{Modern: true, NoTools: true},
			change: each(func(_ http.Header, b []byte) []byte { return b }), odd: "does not declare the capability"},
		"modern, same cursor": {opt: mcptest.Options{Modern: true}, change: list(func(string) string {
			return tools("a", "b", "c", "d") + `,"nextCursor":"8","resultType":"complete","ttlMs":0,"cacheScope":"private"}`
		}), odd: "the same next page"},
		"a media type with a parameter": {change: each(func(h http.Header, b []byte) []byte {
			h.Set("Content-Type", "Application/JSON; charset=UTF-8")
			return b
		})},
		"JSON as text":              {change: each(func(h http.Header, b []byte) []byte { h.Set("Content-Type", "text/plain; charset=utf-8"); return b })},
		"JSON as a web page":        {change: each(func(h http.Header, b []byte) []byte { h.Set("Content-Type", "text/html; charset=UTF-8"); return b })},
		"JSON of a vendor":          {change: each(func(h http.Header, b []byte) []byte { h.Set("Content-Type", "application/vnd.api+JSON"); return b })},
		"JSON without a media type": {change: each(func(h http.Header, b []byte) []byte { h["Content-Type"] = nil; return b })},
		"a batch of one":            {change: each(func(_ http.Header, b []byte) []byte { return []byte("[" + string(b) + "]") })},
		"blank lines around":        {change: each(func(_ http.Header, b []byte) []byte { return []byte("\r\n\n " + string(b) + "\n\r\n") })},
		"other members": {change: each(func(_ http.Header, b []byte) []byte {
			return bytes.Replace(b, []byte(`{`), []byte(`{"debug":{"x":[1]},`), 1)
		})},
		"error null": {change: each(func(_ http.Header, b []byte) []byte {
			return append(bytes.TrimSuffix(bytes.TrimSpace(b), []byte("}")), `,"error":null}`...)
		})},
		"201 for an answer": {change: func(m *wirejson.Message, w http.ResponseWriter, status int, h http.Header, body []byte) {
			if status == 200 && m.Method == "tools/call" {
				status = 201
			}
			pass(w, status, h, body)
		}},
		"an answer to a notification": {change: func(m *wirejson.Message, w http.ResponseWriter, status int, h http.Header, body []byte) {
			if m.Method == "notifications/initialized" {
				h.Set("Content-Type", "application/json")
				status, body = 200, []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"unknown"}}`)
			}
			pass(w, status, h, body)
		}},
		"another version alone": {opt: mcptest.Options{Protocol: "2025-06-18"}, change: func(m *wirejson.Message, w http.ResponseWriter, status int, h http.Header, body []byte) {
			if m.Method == "initialize" && !strings.Contains(string(m.Params), "2025-06-18") {
				body = []byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32602,"message":"Unsupported protocol version","data":{"expected":"2025-06-18"}}}`)
			}
			pass(w, status, h, body)
		}},
		"no answer to a notification": {change: func(m *wirejson.Message, w http.ResponseWriter, status int, h http.Header, body []byte) {
			if m.Method == "notifications/initialized" {
				panic(http.ErrAbortHandler)
			}
			pass(w, status, h, body)
		}},
		"404 for the stream of notifications": {opt: mcptest.Options{}, change: func(m *wirejson.Message, w http.ResponseWriter, status int, h http.Header, body []byte) {
			if status == http.StatusMethodNotAllowed {
				status = http.StatusNotFound
			}
			pass(w, status, h, body)
		}},
		"500 for a notification": {change: func(m *wirejson.Message, w http.ResponseWriter, status int, h http.Header, body []byte) {
			if m.Method == "notifications/initialized" {
				status = 500
			}
			pass(w, status, h, body)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: oddServer(t, c.opt, c.change)}})
			f.must("s", "d", "{}")
			f.until(t, "four tools", func() bool { return slices.Equal(f.lastTools("s"), []string{"a", "b", "c", "d"}) })
			if odd := strings.Join(f.Deviations("s"), "; "); (odd != "") != (c.odd != "") || !strings.Contains(odd, c.odd) {
				t.Errorf("warnings %q, want %q", odd, c.odd)
			}
		})
	}
}

// TestServerThatAnswersNoNotification: a server can be used even if it never responds to the POST of a notification.
func TestServerThatAnswersNoNotification(t *testing.T) {
	t.Parallel()
	inner := mcptest.New(mcptest.Options{NoStream: true}, mcptest.Tool{Definition: mcptest.ToolDefinition("a")})
	url := mcptest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"notifications/initialized"`)) {
			<-r.Context().Done()
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		inner.ServeHTTP(w, r)
	})).URL
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: HTTP, URL: url, ConnectTimeout: 10 * time.Second}})
	f.until(t, "its tool", func() bool { return slices.Equal(f.lastTools("s"), []string{"a"}) })
}

// TestNoiseOfAReadyServer: a server that writes text between its messages can be used, with a warning.
func TestNoiseOfAReadyServer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	spec := stdioSpec(t, "s", "zoo")
	f.ApplySpecs([]Spec{{Name: "s", Transport: Stdio, Command: "/bin/sh", Args: append([]string{"-c", `echo "Listening on port 3000"; exec "$0" "$@"`, spec.Command}, spec.Args...), Env: spec.Env}})
	f.until(t, "it is ready", func() bool { return f.last("s").Phase == Ready })
	if odd := strings.Join(f.Deviations("s"), "; "); !strings.Contains(odd, "not JSON-RPC messages") {
		t.Errorf("warnings %q", odd)
	}
}

// TestLinesThatAreNoMessages: a program that is not an MCP server writes other lines to stdout.
func TestLinesThatAreNoMessages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.ApplySpecs([]Spec{{Name: "s", Transport: Stdio, Command: "/bin/sh", Args: []string{"-c", "echo Listening on port 3000; exec sleep 600"}, ConnectTimeout: 300 * 1e6}})
	f.until(t, "it has failed", func() bool {
		return f.last("s").Phase == Failed && strings.Contains(f.last("s").Failure.Said, "not JSON-RPC")
	})
}
