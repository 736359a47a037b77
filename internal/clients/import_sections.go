package clients

import "strings"

// Clients whose files can be recognized, as far as it matters.
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

// serverSection is a part of a file with servers: an object (name → server), or a list
// of objects with name.
type serverSection struct {
	client  string
	servers *node
	project string // in a file with several projects
}

// findSections finds the servers in any client's file.
func findSections(root *node) ([]serverSection, error) {
	if !root.is(objectNode) {
		return nil, noServers(root)
	}
	var found []serverSection
	add := func(client, project string, servers *node) {
		if servers.is(objectNode) || servers.is(listNode) {
			found = append(found, serverSection{client, servers, project})
		}
	}
	if own := root.get("mcpServers"); own != nil {
		add(clientOf(root, own), "", own)
	}
	if projects := root.get("projects"); projects.is(objectNode) {
		for _, p := range projects.members {
			add(claudeCode, p.name, p.value.get("mcpServers"))
		}
	}
	add(vscode, "", root.get("servers"))
	if mcp := root.get("mcp"); mcp != nil {
		switch inner := mcp.get("servers"); {
		case !keyHasValue(mcp, "type", "local", "remote") && (!inner.is(objectNode) || isServerNode(inner)): // Crush
			add("", "", mcp)
		case !inner.is(objectNode) || isServerNode(inner):
			add(opencode, "", mcp)
		case keyHasValue(inner, "type", "local", "remote"):
			add(opencode, "", inner)
		default: // old settings of VS Code
			add(vscode, "", inner)
		}
	}
	add(zed, "", root.get("context_servers"))
	add(codex, "", root.get("mcp_servers"))
	add(goose, "", root.get("extensions"))
	if experimental := root.get("experimental"); experimental != nil { // Continue before YAML
		add("", "", experimental.get("modelContextProtocolServers"))
	}
	if len(found) == 0 {
		return nil, noServers(root)
	}
	return found, nil
}

func noServers(root *node) error {
	return &syntaxError{root.at, "there are no servers in the text",
		`they stand under "mcpServers", "servers", "context_servers", "mcp", "mcp_servers" or "extensions", as in the client's own file; copy that part with its name`}
}

// clientOf detects the client by the entries of an object that many clients name the
// same.
func clientOf(root, servers *node) string {
	switch {
	case hasKey(servers, "httpUrl", "includeTools", "excludeTools") || keyHasValue(servers, "trust", "true", "false"):
		return gemini
	case hasKey(servers, "alwaysAllow") || keyHasValue(servers, "type", "streamableHttp"):
		return cline
	case root.get("projects").is(objectNode):
		return claudeCode
	}
	return ""
}

// hasKey reports whether any server has one of the keys.
func hasKey(servers *node, keys ...string) bool {
	for _, s := range servers.members {
		for _, key := range keys {
			if s.value.get(key) != nil {
				return true
			}
		}
	}
	return false
}

// keyHasValue reports whether any server's key has one of the values.
func keyHasValue(servers *node, key string, words ...string) bool {
	for _, s := range servers.members {
		if value, ok := s.value.get(key).scalar(); ok && strings.Contains(" "+strings.Join(words, " ")+" ", " "+value+" ") {
			return true
		}
	}
	return false
}

// isServerNode reports whether an object is a server, and not one of servers.
func isServerNode(n *node) bool {
	return n.get("command") != nil || n.get("url").is(stringNode) || n.get("type").is(stringNode)
}
