package upstream

import (
	"bytes"
	"encoding/json"
	"slices"

	"mcpproxy/internal/mcp"
	"mcpproxy/internal/mcp/wirejson"
	"mcpproxy/internal/problem"
)

// HandshakeResult is a server's answer to initialize or server/discover.
type HandshakeResult struct {
	Raw          json.RawMessage // the original result
	Version      string
	Info         json.RawMessage
	Capabilities json.RawMessage
	Instructions string

	hasTools            bool
	announcesTools      bool            // it declares tools/list_changed
	announcesPrimitives bool            // it declares list_changed for prompts or resources
	declared            json.RawMessage // capabilities that MCPProxy declared in initialize
}

// parseInitializeResult parses the result of initialize.
func parseInitializeResult(result json.RawMessage) (*HandshakeResult, error) {
	g, err := parseCommonResult(result)
	if err != nil {
		return nil, err
	}
	g.Version, _ = wirejson.String(wirejson.Find(g.Raw, "protocolVersion"))
	g.Info = wirejson.Find(g.Raw, "serverInfo")
	if !mcp.IsLegacyVersion(g.Version) {
		return nil, problem.TrustedTextErrorf("the server speaks no supported version of the protocol")
	}
	return g, nil
}

// parseDiscoverResult parses the result of server/discover.
func parseDiscoverResult(result json.RawMessage) (*HandshakeResult, error) {
	g, err := parseCommonResult(result)
	if err != nil {
		return nil, err
	}
	if !includesModern(wirejson.Find(g.Raw, "supportedVersions")) {
		return nil, problem.TrustedTextErrorf("the server speaks no supported modern version of the protocol")
	}
	g.Version, g.Info = mcp.Modern, wirejson.Find(wirejson.Find(g.Raw, "_meta"), mcp.MetaServerInfo)
	return g, nil
}

// includesModern reports whether a list of protocol versions includes the modern one.
func includesModern(list json.RawMessage) bool {
	var versions []string
	return json.Unmarshal(list, &versions) == nil && slices.Contains(versions, mcp.Modern)
}

// parseCommonResult parses what both protocols have in common.
func parseCommonResult(result json.RawMessage) (*HandshakeResult, error) {
	if wirejson.Kind(result) != '{' {
		return nil, problem.TrustedTextErrorf("the result is not an object")
	}
	g := &HandshakeResult{Raw: bytes.Clone(result)}
	g.Capabilities = wirejson.Find(g.Raw, "capabilities")
	g.Instructions, _ = wirejson.String(wirejson.Find(g.Raw, "instructions"))
	tools := wirejson.Find(g.Capabilities, "tools")
	g.hasTools = tools != nil && string(tools) != "null"
	g.announcesTools = g.AnnouncesChanges("tools")
	g.announcesPrimitives = g.AnnouncesChanges("prompts") || g.AnnouncesChanges("resources")
	return g, nil
}

// AnnouncesChanges reports whether the server declares list_changed for that kind of list.
func (g *HandshakeResult) AnnouncesChanges(kind string) bool {
	says, _ := wirejson.Bool(wirejson.Find(wirejson.Find(g.Capabilities, kind), "listChanged"))
	return says
}

// HasSameCapabilities reports whether a client that knows g can continue with a server that
// answers o: capabilities and instructions are the same.
func (g *HandshakeResult) HasSameCapabilities(o *HandshakeResult) bool {
	return g.Version == o.Version && g.Instructions == o.Instructions && bytes.Equal(g.Capabilities, o.Capabilities)
}
