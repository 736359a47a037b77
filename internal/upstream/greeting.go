package upstream

import (
	"bytes"
	"encoding/json"
	"slices"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// Greeting is what a server said of itself in the handshake.
type Greeting struct {
	Raw          json.RawMessage // the result as it came
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
	g, err := greetingOf(result)
	if err != nil {
		return nil, err
	}
	g.Version, _ = wirejson.String(wirejson.Find(g.Raw, "protocolVersion"))
	g.Info = wirejson.Find(g.Raw, "serverInfo")
	if !mcp.IsLegacy(g.Version) {
		return nil, problem.Ownf("the server speaks no revision of the protocol that we know")
	}
	return g, nil
}

// readDiscovered reads the result of server/discover.
func readDiscovered(result json.RawMessage) (*Greeting, error) {
	g, err := greetingOf(result)
	if err != nil {
		return nil, err
	}
	if !namesModern(wirejson.Find(g.Raw, "supportedVersions")) {
		return nil, problem.Ownf("the server speaks no modern revision of the protocol that we know")
	}
	g.Version, g.Info = mcp.Modern, wirejson.Find(wirejson.Find(g.Raw, "_meta"), mcp.MetaServerInfo)
	return g, nil
}

// namesModern reports whether the modern revision is in a list of revisions.
func namesModern(list json.RawMessage) bool {
	var versions []string
	return json.Unmarshal(list, &versions) == nil && slices.Contains(versions, mcp.Modern)
}

// greetingOf reads what both eras say alike.
func greetingOf(result json.RawMessage) (*Greeting, error) {
	if wirejson.Kind(result) != '{' {
		return nil, problem.Ownf("the result is not an object")
	}
	g := &Greeting{Raw: bytes.Clone(result)}
	g.Capabilities = wirejson.Find(g.Raw, "capabilities")
	g.Instructions, _ = wirejson.String(wirejson.Find(g.Raw, "instructions"))
	tools := wirejson.Find(g.Capabilities, "tools")
	g.hasTools = tools != nil && string(tools) != "null"
	g.saysChanges = g.Promises("tools")
	g.saysOffers = g.Promises("prompts") || g.Promises("resources")
	return g, nil
}

// Promises reports whether the server will tell when a list of that kind changes.
func (g *Greeting) Promises(kind string) bool {
	says, _ := wirejson.Bool(wirejson.Find(wirejson.Find(g.Capabilities, kind), "listChanged"))
	return says
}

// SameOffer reports whether a client that knows g can go on with a server that
// says o: what it may ask for, and what it was told to do with it, is the same.
func (g *Greeting) SameOffer(o *Greeting) bool {
	return g.Version == o.Version && g.Instructions == o.Instructions && bytes.Equal(g.Capabilities, o.Capabilities)
}
