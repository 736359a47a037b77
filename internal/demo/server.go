// Package demo is `mcpproxy demo`, the first minute: three small upstream MCP
// servers (notes, weather, shifty) and the scripted session of an agent that
// uses them through /mcp.
//
// It guarantees that the demo needs nothing but the binary, and that the
// session is real: the upstreams are real servers over stdio and HTTP, and the
// agent is an HTTP client of the daemon like any other. It is no example of a
// good MCP server: it speaks as much of the protocol as the demo needs, and it
// keeps nothing when it ends.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
)

// maxMessage bounds what the demo servers read, in bytes.
const maxMessage = 1 << 20

// arguments are those of all demo tools.
type arguments struct {
	Title, Text, Words, City string
	Days                     int
	A, B                     float64
}

// errNoTool is what run returns for a tool that the server does not have.
var errNoTool = errors.New("there is no such tool")

// server is a small MCP server of revision 2025-06-18.
type server struct {
	name string
	run  func(tool string, a arguments) (string, error)

	mu    sync.Mutex // guards tools
	tools []json.RawMessage
}

// answer handles one message and returns the response, or nil for none.
func (s *server) answer(raw []byte) []byte {
	m, err := wirejson.Parse(raw)
	if err != nil {
		return wirejson.AppendError(nil, nil, &wirejson.RPCError{Code: wirejson.CodeParse, Message: err.Error()})
	}
	if !m.IsRequest() {
		return nil
	}
	result, err := s.handle(m.Method, m.Params)
	if err != nil {
		var e *wirejson.RPCError
		if !errors.As(err, &e) {
			e = &wirejson.RPCError{Code: wirejson.CodeInternal, Message: err.Error()}
		}
		return wirejson.AppendError(nil, m.ID, e)
	}
	return wirejson.AppendResult(nil, m.ID, result)
}

func (s *server) handle(method string, params json.RawMessage) (json.RawMessage, error) {
	switch method {
	case mcp.Initialize:
		return json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"` + s.name + `","version":"1.0.0"}}`), nil
	case mcp.Ping:
		return json.RawMessage(`{}`), nil
	case mcp.ListTools:
		s.mu.Lock()
		defer s.mu.Unlock()
		return json.Marshal(map[string][]json.RawMessage{"tools": s.tools})
	case mcp.CallTool:
		return s.call(params)
	}
	return nil, &wirejson.RPCError{Code: wirejson.CodeMethodNotFound, Message: "Method not found: " + method}
}

// list makes tools the only ones.
func (s *server) list(tools ...json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = tools
}

func (s *server) call(params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Name      string
		Arguments json.RawMessage
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: err.Error()}
	}
	text, err := s.text(p.Name, p.Arguments)
	if errors.Is(err, errNoTool) {
		return nil, &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: "Unknown tool: " + p.Name}
	}
	type block struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	result := struct {
		Content []block `json:"content"`
		IsError bool    `json:"isError,omitempty"`
	}{[]block{{"text", text}}, err != nil}
	if err != nil {
		result.Content[0].Text = err.Error()
	}
	return json.Marshal(result)
}

// text runs a tool.
func (s *server) text(tool string, raw json.RawMessage) (string, error) {
	var a arguments
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &a); err != nil {
			return "", fmt.Errorf("the arguments cannot be read: %w", err)
		}
	}
	return s.run(tool, a)
}

// stdio serves lines until the input ends; every value of changed is announced
// as a change of the list.
func (s *server) stdio(ctx context.Context, in io.Reader, out io.Writer, changed <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var writing sync.Mutex
	write := func(message []byte) error {
		writing.Lock()
		defer writing.Unlock()
		_, err := out.Write(append(message, '\n'))
		return err
	}
	var announcing sync.WaitGroup
	defer announcing.Wait()
	announcing.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-changed:
				if write(wirejson.AppendNotification(nil, mcp.ToolsChanged, nil)) != nil {
					return
				}
			}
		}
	})
	defer cancel()
	lines := wirejson.NewLineReader(in, maxMessage)
	for {
		line, err := lines.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, wirejson.ErrTooLong):
			continue
		case err != nil:
			return err
		}
		if reply := s.answer(line); reply != nil {
			if err := write(reply); err != nil {
				return err
			}
		}
	}
}

// ServeHTTP is streamable HTTP without sessions and without streams.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "only POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	reply := s.answer(body)
	if reply == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(reply) // the client is gone: nobody is left to tell
}
