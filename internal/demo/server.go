// Package demo implements `mcpproxy demo`: three sample MCP servers (notes, weather, shifty) and the scripted session
// of an agent that uses them through /mcp.
//
// Guarantees:
//   - The demo needs only the binary.
//   - The session is real: the servers use stdio and HTTP, and the agent is an ordinary HTTP client.
//
// Do not copy the sample servers: they implement only the parts of MCP that the demo needs, and store nothing.
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

// maxMessage limits the messages that the demo servers read, in bytes.
const maxMessage = 1 << 20

// toolArguments contains the arguments of all demo tools.
type toolArguments struct {
	Title, Text, Words, City string
	Days                     int
	A, B                     float64
}

// errNoTool is the error for an unknown tool.
var errNoTool = errors.New("unknown tool")

// demoServer is a minimal MCP server of protocol revision 2025-06-18.
type demoServer struct {
	name string
	run  func(tool string, a toolArguments) (string, error)

	mu    sync.Mutex // guards tools
	tools []json.RawMessage
}

// answerMessage handles one message and returns the response, or nil if the message needs none.
func (s *demoServer) answerMessage(raw []byte) []byte {
	m, err := wirejson.ParseServerMessage(raw)
	if err != nil {
		return wirejson.AppendError(nil, nil, &wirejson.RPCError{Code: wirejson.CodeParse, Message: err.Error()})
	}
	if !m.IsRequest() {
		return nil
	}
	result, err := s.handleRequest(m.Method, m.Params)
	if err != nil {
		var e *wirejson.RPCError
		if !errors.As(err, &e) {
			e = &wirejson.RPCError{Code: wirejson.CodeInternal, Message: err.Error()}
		}
		return wirejson.AppendError(nil, m.ID, e)
	}
	return wirejson.AppendResult(nil, m.ID, result)
}

func (s *demoServer) handleRequest(method string, params json.RawMessage) (json.RawMessage, error) {
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
		return s.callTool(params)
	}
	return nil, &wirejson.RPCError{Code: wirejson.CodeMethodNotFound, Message: "Method not found: " + method}
}

// setTools replaces the tools.
func (s *demoServer) setTools(tools ...json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tools = tools
}

func (s *demoServer) callTool(params json.RawMessage) (json.RawMessage, error) {
	var p struct {
		Name      string
		Arguments json.RawMessage
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, &wirejson.RPCError{Code: wirejson.CodeInvalidParams, Message: err.Error()}
	}
	text, err := s.runTool(p.Name, p.Arguments)
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

// runTool runs a tool.
func (s *demoServer) runTool(tool string, raw json.RawMessage) (string, error) {
	var a toolArguments
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &a); err != nil {
			return "", fmt.Errorf("the arguments cannot be read: %w", err)
		}
	}
	return s.run(tool, a)
}

// serveStdio handles one message per line until the input ends. For each value from changed it sends a list-changed
// notification.
func (s *demoServer) serveStdio(ctx context.Context, in io.Reader, out io.Writer, changed <-chan struct{}) error {
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
		if reply := s.answerMessage(line); reply != nil {
			if err := write(reply); err != nil {
				return err
			}
		}
	}
}

// ServeHTTP implements Streamable HTTP without sessions and event streams.
func (s *demoServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "only POST", http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxMessage))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	reply := s.answerMessage(body)
	if reply == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(reply) // fails only if the client has disconnected
}
