package clients

import "strings"

// Clients whose files can be recognized, if the client affects the import.
const (
	claudeCode = "Claude Code"
	cline      = "Cline"
	codex      = "Codex"
	gemini     = "Gemini CLI"
	goose      = "Goose"
	opencode   = "opencode"
	vscode     = "VS Code"
	zed        = "Zed"
)

// serverSection is a part of a file that contains servers: an object of servers by name, or a list of objects with a
// name.
type serverSection struct {
	client  string
	servers *node
	project string // in a file with several projects
}

// findServerSections finds the sections with servers in any client's file.
func findServerSections(root *node) ([]serverSection, error) {
	if !root.isKind(objectNode) {
		return nil, newNoServersError(root)
	}
	var found []serverSection
	add := func(client, project string, servers *node) {
		if servers.isKind(objectNode) || servers.isKind(listNode) {
			found = append(found, serverSection{client, servers, project})
		}
	}
	if own := root.memberValue("mcpServers"); own != nil {
		add(detectClient(root, own), "", own)
	}
	if projects := root.memberValue("projects"); projects.isKind(objectNode) {
		for _, p := range projects.members {
			add(claudeCode, p.name, p.value.memberValue("mcpServers"))
		}
	}
	add(vscode, "", root.memberValue("servers"))
	if mcp := root.memberValue("mcp"); mcp != nil {
		switch inner := mcp.memberValue("servers"); {
		case !anyServerKeyHasValue(mcp, "type", "local", "remote") && (!inner.isKind(objectNode) || isServerNode(inner)): // Crush
			add("", "", mcp)
		case !inner.isKind(objectNode) || isServerNode(inner):
			add(opencode, "", mcp)
		case anyServerKeyHasValue(inner, "type", "local", "remote"):
			add(opencode, "", inner)
		default: // old settings of VS Code
			add(vscode, "", inner)
		}
	}
	add(zed, "", root.memberValue("context_servers"))
	add(codex, "", root.memberValue("mcp_servers"))
	add(goose, "", root.memberValue("extensions"))
	if experimental := root.memberValue("experimental"); experimental != nil { // Continue before YAML
		add("", "", experimental.memberValue("modelContextProtocolServers"))
	}
	if len(found) == 0 {
		return nil, newNoServersError(root)
	}
	return found, nil
}

func newNoServersError(root *node) error {
	return &syntaxError{root.at, "the text contains no servers",
		`they are under "mcpServers", "servers", "context_servers", "mcp", "mcp_servers" or "extensions", as in the client's own file; copy that part with its name`}
}

// detectClient detects the client from the entries of an object whose name many clients use.
func detectClient(root, servers *node) string {
	switch {
	case anyServerHasKey(servers, "httpUrl", "includeTools", "excludeTools") || anyServerKeyHasValue(servers, "trust", "true", "false"):
		return gemini
	case anyServerHasKey(servers, "alwaysAllow") || anyServerKeyHasValue(servers, "type", "streamableHttp"):
		return cline
	case root.memberValue("projects").isKind(objectNode):
		return claudeCode
	}
	return ""
}

// anyServerHasKey reports whether any server has one of the keys.
func anyServerHasKey(servers *node, keys ...string) bool {
	for _, s := range servers.members {
		for _, key := range keys {
			if s.value.memberValue(key) != nil {
				return true
			}
		}
	}
	return false
}

// anyServerKeyHasValue reports whether any server's key has one of the values.
func anyServerKeyHasValue(servers *node, key string, words ...string) bool {
	for _, s := range servers.members {
		if value, ok := s.value.memberValue(key).scalarText(); ok && strings.Contains(" "+strings.Join(words, " ")+" ", " "+value+" ") {
			return true
		}
	}
	return false
}

// isServerNode reports whether an object is a single server, and not an object of servers.
func isServerNode(n *node) bool {
	return n.memberValue("command") != nil || n.memberValue("url").isKind(stringNode) || n.memberValue("type").isKind(stringNode)
}
