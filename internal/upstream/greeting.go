package upstream

import (
	"bytes"
	"encoding/json"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/rawjson"
)

// Greeting is what a server said of itself in the handshake.
type Greeting struct {
	Raw          json.RawMessage // the result of initialize as it came; nil in the modern era
	Version      string
	Info         json.RawMessage
	Capabilities json.RawMessage
	Instructions string

	hasTools    bool
	saysChanges bool // it promises tools/list_changed
	saysOffers  bool // it promises the same of prompts or resources
}

// readGreeting reads the result of initialize.
func readGreeting(result json.RawMessage) (*Greeting, error) {
	m, err := members(result)
	if err != nil {
		return nil, err
	}
	g := &Greeting{Raw: bytes.Clone(result), Info: m["serverInfo"]}
	if json.Unmarshal(m["protocolVersion"], &g.Version) != nil || !mcp.IsSpoken(g.Version) {
		return nil, problem.Ownf("the server speaks no revision of the protocol that we know")
	}
	g.offer(m)
	return g, nil
}

// offer takes what a server says that it offers, which both eras say alike.
func (g *Greeting) offer(m map[string]json.RawMessage) {
	g.Capabilities = m["capabilities"]
	if raw := m["instructions"]; raw != nil {
		json.Unmarshal(raw, &g.Instructions)
	}
	if caps, err := members(g.Capabilities); err == nil && caps["tools"] != nil {
		g.hasTools = string(caps["tools"]) != "null"
		if tools, err := members(caps["tools"]); err == nil {
			g.saysChanges = string(tools["listChanged"]) == "true"
		}
	}
	g.saysOffers = g.Promises("prompts") || g.Promises("resources")
}

// Promises reports whether the server will tell when a list of that kind changes.
func (g *Greeting) Promises(kind string) bool {
	says, _ := rawjson.Bool(rawjson.Find(rawjson.Find(g.Capabilities, kind), "listChanged"))
	return says
}

// SameOffer reports whether a client that knows g can go on with a server that
// says o: what it may ask for, and what it was told to do with it, is the same.
func (g *Greeting) SameOffer(o *Greeting) bool {
	return g.Version == o.Version && g.Instructions == o.Instructions && bytes.Equal(g.Capabilities, o.Capabilities)
}

// members returns the members of an object; their names are compared exactly.
func members(raw json.RawMessage) (map[string]json.RawMessage, error) {
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil || m == nil {
		return nil, problem.Ownf("the result is not an object")
	}
	return m, nil
}
