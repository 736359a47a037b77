package auth

// Actor is the identity of a caller. The zero value has the kind Nobody, which has no rights.
type Actor struct {
	Kind Kind
	// Name and ID identify the agent token; empty if there is none.
	Name, ID string
	// FromWebUI is set for a session of the web UI.
	FromWebUI bool
}

// Kind is the kind of an actor.
type Kind uint8

// The kinds.
const (
	Nobody Kind = iota
	Agent       // an MCP client
	Admin       // the user, identified by the socket, the API key, or a session of the web UI
)

// String returns the actor as recorded: "admin", "agent", or "agent:NAME" with the
// token's name.
func (a Actor) String() string {
	switch {
	case a.Kind == Admin:
		return "admin"
	case a.Kind == Agent && a.Name != "":
		return "agent:" + a.Name
	case a.Kind == Agent:
		return "agent"
	}
	return "nobody"
}

// Principal identifies the owner of private data. Unlike String, it distinguishes a token
// from an earlier one of the same name.
func (a Actor) Principal() string {
	if a.ID != "" {
		return a.String() + "#" + a.ID // no token name contains '#'
	}
	return a.String()
}
