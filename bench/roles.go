package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// rpcMessage is the JSON-RPC envelope as a typical server decodes it.
type rpcMessage struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
}

// echoTool is the tool of the upstream in the call benchmark.
const echoTool = `{"name":"echo","description":"Echo a text.","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"n":{"type":"integer"}},"required":["text"],"additionalProperties":false},"annotations":{"readOnlyHint":true}}`

// largeTool returns a text of the requested size.
const largeTool = `{"name":"large","description":"Give a text of so many bytes.","inputSchema":{"type":"object","properties":{"bytes":{"type":"integer"}},"required":["bytes"],"additionalProperties":false},"annotations":{"readOnlyHint":true}}`

// answerRequest implements the upstream: it decodes the request and returns a small result.
func answerRequest(raw []byte, tools []byte) []byte {
	var m rpcMessage
	if json.Unmarshal(raw, &m) != nil || m.ID == nil {
		return nil
	}
	m.Result = json.RawMessage(`{}`)
	switch m.Method {
	case "initialize":
		m.Result = json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}`)
	case "tools/list":
		m.Result = append(append([]byte(`{"tools":`), tools...), '}')
	case "tools/call":
		var p struct {
			Arguments struct {
				Text  string `json:"text"`
				Bytes int    `json:"bytes"`
			} `json:"arguments"`
		}
		if json.Unmarshal(m.Params, &p) != nil {
			return nil
		}
		if n := p.Arguments.Bytes; n > 0 {
			p.Arguments.Text = strings.Repeat("a short text to echo", n/20+1)[:n]
		}
		text, _ := json.Marshal(p.Arguments.Text) // a string always encodes
		m.Result = append(append([]byte(`{"content":[{"type":"text","text":`), text...), "}]}"...)
	}
	m.Method, m.Params = "", nil
	out, _ := json.Marshal(m) // raw messages that were decoded before
	return out
}

// serveUpstreamHTTP serves MCP over HTTP: the echo tool on /mcp, and on /N (N is a
// number) the N-th part of a catalog of synthetic tools.
func serveUpstreamHTTP(args []string) error {
	perServer := 100
	if len(args) > 0 {
		perServer, _ = strconv.Atoi(args[0])
	}
	return listenAndServe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "only POST", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		tools := []byte("[" + echoTool + "," + largeTool + "]")
		if part, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/")); err == nil {
			tools = syntheticTools(part, perServer)
		}
		out := answerRequest(body, tools)
		if out == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(out) // the other side is gone
	}))
}

// serveUpstreamStdio serves the echo tool over stdin and stdout.
func serveUpstreamStdio() error {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(make([]byte, 1<<20), 16<<20)
	out := bufio.NewWriter(os.Stdout)
	for in.Scan() {
		reply := answerRequest(in.Bytes(), []byte("["+echoTool+"]"))
		if reply == nil {
			continue
		}
		_, _ = out.Write(append(reply, '\n')) // Flush tells
		if err := out.Flush(); err != nil {
			return err
		}
	}
	return in.Err()
}

// serveMinimalRelay implements the floor: the minimum work of a relay on net/http.
func serveMinimalRelay(args []string) error {
	upstream := args[0]
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true}}
	return listenAndServe(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var m rpcMessage
		if err := json.Unmarshal(body, &m); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		out, err := http.NewRequestWithContext(r.Context(), http.MethodPost, upstream, bytes.NewReader(body))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		out.Header.Set("Content-Type", "application/json")
		out.Header.Set("Accept", "application/json, text/event-stream")
		answer, err := client.Do(out)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body) // the client is gone
	}))
}

// listenAndServe listens on a free loopback port and prints it.
func listenAndServe(h http.Handler) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr().String())
	return http.Serve(l, h)
}

var verbs = []string{"get", "list", "create", "update", "delete", "search", "export", "import", "archive", "sync"}
var nouns = []string{"issue", "invoice", "customer", "repository", "calendar event", "document", "deployment", "ticket", "message", "report",
	"contact", "order", "pipeline", "branch", "subscription", "payment", "dashboard", "alert", "volume", "snapshot"}

// syntheticTools returns n tools of the server with index part, as a JSON array.
func syntheticTools(part, n int) []byte {
	out := []byte{'['}
	for i := range n {
		k := part*n + i
		verb, noun := verbs[k%len(verbs)], nouns[k/len(verbs)%len(nouns)]
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, `{"name":"%s_%s_%d","description":"%s a %s in workspace %d of the service. Gives the %s with its fields, or an error that says what is missing.","inputSchema":{"type":"object","properties":{"id":{"type":"string","description":"Identifier of the %s"},"workspace":{"type":"string","description":"Workspace to look in"},"limit":{"type":"integer","minimum":1,"maximum":100,"default":20},"fields":{"type":"array","items":{"type":"string"}}},"required":["id"]},"annotations":{"readOnlyHint":%t}}`,
			verb, strings.ReplaceAll(noun, " ", "_"), k, verb, noun, part, noun, noun, verb == "get" || verb == "list" || verb == "search")
	}
	return append(out, ']')
}
