package mcptest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"mcpproxy/internal/mcp/wirejson"
)

// Surface is an endpoint of the gateway, with the protocol of the client.
type Surface struct {
	Path   string // "/mcp", "/mcp/all" or "/mcp/servers/"
	Modern bool
}

// AllSurfaces returns all surfaces.
func AllSurfaces() []Surface {
	var all []Surface
	for _, path := range []string{"/mcp", "/mcp/all", serverPath} {
		all = append(all, Surface{path, false}, Surface{path, true})
	}
	return all
}

const serverPath = "/mcp/servers/"

func (s Surface) String() string {
	era := "legacy"
	if s.Modern {
		era = "modern"
	}
	return strings.TrimSuffix(s.Path, "/") + " " + era
}

// GatewayClient is a client that calls the tools of one server through the gateway, one call at a time. It opens
// another session when the previous one has ended.
type GatewayClient struct {
	Base    string // of the gateway: http://host:port
	Surface Surface
	Server  string
	HTTP    *http.Client

	session string
}

// CallOutcome is the result of a call.
type CallOutcome struct {
	// What is "ok", the code of a typed error, or "session over" if the client must open another session. Any other
	// text is an invalid outcome.
	What    string
	Unclear bool
	Took    time.Duration
}

func newUnclearOutcome(format string, args ...any) CallOutcome {
	return CallOutcome{What: fmt.Sprintf(format, args...), Unclear: true}
}

// callIDs number the calls, so that the answer to another call is detected.
var callIDs atomic.Int64

// Call makes one call. A correct answer contains right. If right is empty, no answer is correct.
func (c *GatewayClient) Call(tool, args, right string) CallOutcome {
	began := time.Now()
	if !c.Surface.Modern && c.session == "" {
		if o, opened := c.openSession(); !opened {
			o.Took = time.Since(began)
			return o
		}
		began = time.Now()
	}
	id := callIDs.Add(1)
	name := tool
	switch c.Surface.Path {
	case "/mcp":
		name = "call_tool_destructive"
		args = fmt.Sprintf(`{"name":"%s:%s","args":%s}`, c.Server, tool, args)
	case "/mcp/all":
		name = c.Server + "__" + tool
	}
	meta := `"progressToken":1`
	if c.Surface.Modern {
		meta += `,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}`
	}
	resp, answer, err := c.send(http.MethodPost, name, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{%s}}}`,
		id, name, args, meta))
	o := c.toOutcome(resp, answer, err, id, right)
	o.Took = time.Since(began)
	return o
}

// openSession opens a session.
func (c *GatewayClient) openSession() (CallOutcome, bool) {
	resp, answer, err := c.send(http.MethodPost, "", `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"caller","version":"1"}}}`)
	if err != nil {
		return newUnclearOutcome("initialize: %v", err), false
	}
	if c.session = resp.Header.Get(sessionHeader); c.session == "" {
		return c.toOutcome(resp, answer, nil, 0, ""), false
	}
	if _, _, err := c.send(http.MethodPost, "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		return newUnclearOutcome("initialized: %v", err), false
	}
	return CallOutcome{}, true
}

// toOutcome returns the outcome of an answer.
func (c *GatewayClient) toOutcome(resp *http.Response, answer []byte, err error, id int64, right string) CallOutcome {
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
	if err != nil {
		return newUnclearOutcome("%v", err)
	}
	if err := json.Unmarshal(answer, &m); err != nil {
		return newUnclearOutcome("status %d, %v in %.200q", resp.StatusCode, err, answer)
	}
	switch {
	case resp.StatusCode == http.StatusNotFound && m.Error != nil && c.session != "":
		c.session = ""
		return CallOutcome{What: "session over"}
	case string(m.ID) != fmt.Sprint(id):
		return newUnclearOutcome("the answer to %s came to %d", m.ID, id)
	case m.Error != nil && m.Error.Data.Code != "":
		return CallOutcome{What: m.Error.Data.Code}
	case m.Error != nil:
		return CallOutcome{What: fmt.Sprint("error ", m.Error.Code)}
	case m.Result == nil:
		return newUnclearOutcome("neither a result nor an error in %.200q", answer)
	case m.Result.IsError && m.Result.StructuredContent.Error.Code != "":
		return CallOutcome{What: m.Result.StructuredContent.Error.Code}
	case m.Result.IsError, right == "", !bytes.Contains(answer, []byte(right)):
		return newUnclearOutcome("a wrong answer: %.200q", answer)
	}
	return CallOutcome{What: "ok"}
}

// send sends a message and returns the last message of the answer. name is the called tool, if any.
func (c *GatewayClient) send(method, name, body string) (*http.Response, []byte, error) {
	url := c.Base + c.Surface.Path
	if c.Surface.Path == serverPath {
		url += c.Server
	}
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	switch {
	case c.Surface.Modern:
		req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		req.Header.Set("Mcp-Method", "tools/call")
		req.Header.Set("Mcp-Name", name)
	case c.session != "":
		req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		req.Header.Set(sessionHeader, c.session)
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		answer, err := io.ReadAll(resp.Body)
		return resp, answer, err
	}
	var last []byte
	for events := wirejson.NewSSEReader(resp.Body, maxMessage); ; {
		e, err := events.Next()
		if err == io.EOF {
			return resp, last, nil
		}
		if err != nil {
			return resp, last, err
		}
		last = bytes.Clone(e.Data)
	}
}

// Close ends the session, if any.
func (c *GatewayClient) Close() {
	if c.session != "" {
		_, _, _ = c.send(http.MethodDelete, "", "") // it may have ended
	}
}
