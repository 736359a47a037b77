package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"mcpproxy/internal/link"
	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
	"mcpproxy/internal/session"
	"mcpproxy/internal/tool"
)

// Bounds on a server's list of tools. All of its pages together may be as long
// as a message may.
const (
	maxPages = 1_000
	maxTools = 20_000
)

// greeting is what a server said in initialize.
type greeting struct {
	raw          json.RawMessage // the result of initialize as it came
	version      string
	info         json.RawMessage
	capabilities json.RawMessage
	instructions string
	hasTools     bool
	saysChanges  bool // it promises tools/list_changed
	saysOffers   bool // it promises the same of prompts or resources
}

// initialize does the handshake on a new link.
func (s *server) initialize(ctx context.Context, l link.Link) (*greeting, error) {
	params := fmt.Appendf(nil, `{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"mcpproxy","version":%s}}`,
		mcp.Legacy, rawjson.AppendString(nil, s.opt.ClientVersion))
	result, err := s.ask(ctx, l, mcp.Initialize, params)
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	g, err := readGreeting(result)
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	l.Agree(g.version)
	var status *link.StatusError
	switch err := l.Notify(ctx, mcp.Initialized, nil); {
	case errors.As(err, &status): // some servers know no notifications
		s.Remark("notifications/initialized: " + err.Error())
	case err != nil:
		return nil, fmt.Errorf("send the end of the handshake: %w", err)
	}
	l.Attend(ctx)
	return g, nil
}

func readGreeting(result json.RawMessage) (*greeting, error) {
	m, err := members(result)
	if err != nil {
		return nil, err
	}
	g := &greeting{raw: bytes.Clone(result), info: m["serverInfo"]}
	if json.Unmarshal(m["protocolVersion"], &g.version) != nil || !mcp.IsSpoken(g.version) {
		return nil, problem.Ownf("the server speaks no revision of the protocol that we know")
	}
	g.offer(m)
	return g, nil
}

// offer takes what a server says that it offers, which both eras say alike.
func (g *greeting) offer(m map[string]json.RawMessage) {
	g.capabilities = m["capabilities"]
	if raw := m["instructions"]; raw != nil {
		json.Unmarshal(raw, &g.instructions)
	}
	if caps, err := members(g.capabilities); err == nil && caps["tools"] != nil {
		g.hasTools = string(caps["tools"]) != "null"
		if tools, err := members(caps["tools"]); err == nil {
			g.saysChanges = string(tools["listChanged"]) == "true"
		}
	}
	g.saysOffers = g.promises("prompts") || g.promises("resources")
}

// promises says whether the server will tell when a list of that kind changes.
func (g *greeting) promises(kind string) bool {
	says, _ := rawjson.Bool(rawjson.Find(rawjson.Find(g.capabilities, kind), "listChanged"))
	return says
}

// members gives the members of an object; their names are compared exactly.
func members(raw json.RawMessage) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || m == nil {
		return nil, problem.Ownf("the result is not an object")
	}
	return m, nil
}

// answerError is a JSON-RPC error that a server answered to a request of our
// own. Its text is the server's and goes to the server's log only.
type answerError struct{ code int }

func (e *answerError) Error() string {
	return fmt.Sprintf("the server answered with error %d, its log has the text", e.code)
}

// ask sends a request of our own and returns its result.
func (s *server) ask(ctx context.Context, l link.Link, method string, params json.RawMessage) (json.RawMessage, error) {
	reply, err := l.Do(ctx, &session.Request{Method: method, Params: params})
	if err != nil {
		return nil, err
	}
	if reply.Error != nil {
		s.Remark(fmt.Sprintf("error %d to %s: %s", reply.Error.Code, method, reply.Error.Message))
		return nil, &answerError{reply.Error.Code}
	}
	return reply.Result, nil
}

// A list beyond freeList bytes is read at listRate bytes a second, so that one
// without an end does not keep all processors busy until it is too long.
const (
	freeList = 4 << 20
	listRate = 8 << 20
)

// listTools reads all pages. Definitions that cannot be used are left out.
func (s *server) listTools(ctx context.Context, l link.Link, g *greeting) ([]tool.Definition, error) {
	if !g.hasTools {
		return nil, nil
	}
	var (
		list   toolList
		params json.RawMessage
	)
	for range maxPages {
		result, err := s.ask(ctx, l, mcp.ListTools, params)
		if err != nil {
			return nil, fmt.Errorf("list the tools: %w", err)
		}
		cursor, err := list.add(result, s.opt.MaxMessage)
		if err != nil {
			return nil, fmt.Errorf("list the tools: %w", err)
		}
		if cursor == nil {
			return s.definitions(list.tools), nil
		}
		params = append(append(json.RawMessage(`{"cursor":`), cursor...), '}')
		if beyond := min(len(result), list.bytes-freeList); beyond > 0 {
			select {
			case <-l.Done(): // which the next request says
			case <-ctx.Done():
			case <-time.After(time.Duration(beyond) * time.Second / listRate):
			}
		}
	}
	return nil, problem.Ownf("list the tools: the list has more than %d pages", maxPages)
}

// toolList collects the pages of a list. Nothing is made of them before the
// last one has come: it may never come.
type toolList struct {
	tools []json.RawMessage
	bytes int
}

// add takes one page and gives the cursor of the next, nil when there is none.
// In the revisions spoken here an empty cursor ends the list.
func (t *toolList) add(result json.RawMessage, limit int) (cursor json.RawMessage, err error) {
	tools, next, err := readPage(result)
	if err != nil {
		return nil, err
	}
	if t.bytes += len(result); t.bytes > limit {
		return nil, problem.Ownf("the list is longer than %d bytes", limit)
	}
	if t.tools = append(t.tools, tools...); len(t.tools) > maxTools {
		return nil, problem.Ownf("the list has more than %d tools", maxTools)
	}
	if rawjson.Kind(next) != '"' || string(next) == `""` {
		return nil, nil
	}
	return next, nil
}

// definitions are those of a list that can be used, each with bytes of its own.
func (s *server) definitions(list []json.RawMessage) []tool.Definition {
	tools, seen := make([]tool.Definition, 0, len(list)), make(map[string]bool, len(list))
	for _, raw := range list {
		d, err := tool.ParseDefinition(s.spec.Name, bytes.Clone(raw))
		switch {
		case err != nil:
			s.Remark("a tool is left out: " + err.Error())
		case seen[d.ID.Tool]:
			s.Remark("a tool is left out: there is another one of that name: " + d.ID.Tool)
		default:
			seen[d.ID.Tool] = true
			tools = append(tools, d)
		}
	}
	return tools
}

// readPage gives the definitions on a page and the cursor of the next one, as
// pieces of the result: a page may be large.
func readPage(result json.RawMessage) (tools []json.RawMessage, next json.RawMessage, err error) {
	var list json.RawMessage
	if rawjson.Members(result, func(name, value []byte) error {
		switch string(name) {
		case "tools":
			list = value
		case "nextCursor":
			next = value
		}
		return nil
	}) != nil {
		return nil, nil, problem.Ownf("the result is not an object")
	}
	if string(list) == "null" {
		return nil, next, nil
	}
	if rawjson.Elements(list, func(raw []byte) error {
		tools = append(tools, raw)
		return nil
	}) != nil {
		return nil, nil, problem.Ownf("the result has no list of tools")
	}
	return tools, next, nil
}
