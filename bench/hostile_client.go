package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"mcpproxy/internal/jsonrpc"
)

// surface is where and in which era a client calls.
type surface struct {
	name   string
	modern bool
}

func surfaces() []surface {
	return []surface{{"/mcp", false}, {"/mcp", true}, {"/mcp/all", false}, {"/mcp/all", true}, {"/mcp/servers/…", false}, {"/mcp/servers/…", true}}
}

func (s surface) String() string {
	if s.modern {
		return s.name + " modern"
	}
	return s.name + " legacy"
}

// hostileClient calls the tools of one hostile server on one surface.
type hostileClient struct {
	r        *hostileRun
	surface  surface
	server   string
	session  string
	outcomes []hostileOutcome
}

// hostileOutcome is what came of a call: "ok", the code of an error, or, with
// bad set, what no client can make sense of.
type hostileOutcome struct {
	what string
	bad  bool
	took time.Duration
}

func hostileClients(r *hostileRun, server string) []*hostileClient {
	var clients []*hostileClient
	for _, s := range surfaces() {
		clients = append(clients, &hostileClient{r: r, surface: s, server: server})
	}
	return clients
}

// hostileClock bounds every exchange: what takes that long hangs.
var hostileHTTP = &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

var hostileID atomic.Int64

func (c *hostileClient) url() string {
	if c.surface.name == "/mcp/servers/…" {
		return "http://" + c.r.base + "/mcp/servers/" + c.server
	}
	return "http://" + c.r.base + c.surface.name
}

// params are those of the call of a tool on the client's surface.
func (c *hostileClient) params(tool, args string) (name, params string) {
	switch c.surface.name {
	case "/mcp":
		name = "call_tool_destructive"
		args = fmt.Sprintf(`{"name":"%s:%s","args":%s}`, c.server, tool, args)
	case "/mcp/all":
		name = c.server + "__" + tool
	default:
		name = tool
	}
	return name, fmt.Sprintf(`"name":%q,"arguments":%s`, name, args)
}

// call makes one call. What is right has the text in it.
func (c *hostileClient) call(tool, args, right string) hostileOutcome {
	if !c.surface.modern && c.session == "" {
		if o := c.open(); o.what != "" {
			return o
		}
	}
	id := hostileID.Add(1)
	name, params := c.params(tool, args)
	meta := `"progressToken":1`
	headers := map[string]string{"Mcp-Session-Id": c.session, "Mcp-Protocol-Version": "2025-11-25"}
	if c.surface.modern {
		meta += `,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
		headers = map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": name}
	}
	began := time.Now()
	status, answer, _, err := c.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{%s,"_meta":{%s}}}`, id, params, meta), headers)
	o := hostileOutcome{took: time.Since(began)}
	if err != nil {
		return o.unclear(err.Error())
	}
	c.judge(&o, status, answer, id, right)
	return o
}

func (o hostileOutcome) unclear(why string) hostileOutcome {
	o.what, o.bad = why, true
	return o
}

// judge says what an answer means.
func (c *hostileClient) judge(o *hostileOutcome, status int, answer []byte, id int64, right string) {
	var m struct {
		ID     json.RawMessage
		Result *struct {
			IsError           bool
			StructuredContent struct{ Error struct{ Code string } }
		}
		Error *struct {
			Code int
			Data struct{ Code string }
		}
	}
	switch err := json.Unmarshal(answer, &m); {
	case err != nil:
		*o = o.unclear(fmt.Sprintf("status %d, %v in %.200q", status, err, answer))
	case status == http.StatusNotFound && m.Error != nil && c.session != "":
		o.what, c.session = "session over", ""
	case string(m.ID) != fmt.Sprint(id):
		*o = o.unclear(fmt.Sprintf("the answer to %s came to %d", m.ID, id))
	case m.Error != nil && m.Error.Data.Code != "":
		o.what = m.Error.Data.Code
	case m.Error != nil:
		o.what = fmt.Sprint("error ", m.Error.Code)
	case m.Result == nil:
		*o = o.unclear("neither a result nor an error")
	case m.Result.IsError && m.Result.StructuredContent.Error.Code != "":
		o.what = m.Result.StructuredContent.Error.Code
	case m.Result.IsError:
		*o = o.unclear(fmt.Sprintf("an error without a code: %.200q", answer))
	case right == "" || !bytes.Contains(answer, []byte(right)):
		*o = o.unclear(fmt.Sprintf("a wrong answer: %.200q", answer))
	default:
		o.what = "ok"
	}
}

// open begins a session. The outcome is empty when that worked.
func (c *hostileClient) open() hostileOutcome {
	began := time.Now()
	status, answer, header, err := c.post(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`, nil)
	o := hostileOutcome{took: time.Since(began)}
	if err != nil {
		return o.unclear(err.Error())
	}
	if c.session = header.Get("Mcp-Session-Id"); c.session == "" {
		c.judge(&o, status, answer, 0, "")
		return o
	}
	_, _, _, err = c.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, map[string]string{"Mcp-Session-Id": c.session, "Mcp-Protocol-Version": "2025-11-25"})
	if err != nil {
		return o.unclear(err.Error())
	}
	return hostileOutcome{}
}

// post sends a message and gives the last one of the answer.
func (c *hostileClient) post(body string, headers map[string]string) (int, []byte, http.Header, error) {
	return c.send(http.MethodPost, body, headers)
}

func (c *hostileClient) send(method, body string, headers map[string]string) (int, []byte, http.Header, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, c.url(), strings.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	resp, err := hostileHTTP.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		answer, err := io.ReadAll(resp.Body)
		return resp.StatusCode, answer, resp.Header, err
	}
	var last []byte
	for events := jsonrpc.NewEventReader(resp.Body, 32<<20); ; {
		e, err := events.Next()
		if err == io.EOF {
			return resp.StatusCode, last, resp.Header, nil
		}
		if err != nil {
			return resp.StatusCode, last, resp.Header, err
		}
		last = bytes.Clone(e.Data)
	}
}

// close ends the session.
func (c *hostileClient) close() {
	if c.session == "" {
		return
	}
	_, _, _, _ = c.send(http.MethodDelete, "", map[string]string{"Mcp-Session-Id": c.session, "Mcp-Protocol-Version": "2025-11-25"}) // it may have ended
}

// report prints what the calls came to, and holds it against the bounds.
func (c *hostileClient) report(m hostileMode, r *hostileRun) {
	if len(c.outcomes) == 0 {
		return
	}
	count, slowest := map[string]int{}, time.Duration(0)
	for _, o := range c.outcomes {
		count[o.what]++
		slowest = max(slowest, o.took)
		if o.bad {
			r.miss("%s, %s on %v: %s", m.name, c.server, c.surface, o.what)
		}
	}
	var kinds []string
	for what, n := range count {
		kinds = append(kinds, fmt.Sprintf("%s × %d", what, n))
	}
	slices.Sort(kinds)
	fmt.Printf("    %-22v %-50s slowest %s\n", c.surface, strings.Join(kinds, ", "), micro(slowest))
	if m.server != "pages" && slowest > hostileDeadline+hostileSlack {
		r.miss("%s, %s on %v: answered after %v", m.name, c.server, c.surface, slowest)
	}
}
