package auth

// Actor is who asks. The zero value is nobody, and may do nothing.
type Actor struct {
	Kind Kind
	// Name and ID are those of the agent token, empty otherwise.
	Name, ID string
	// Page is set for who has come by the session of a page.
	Page bool
}

// Kind is the kind of an actor.
type Kind uint8

// The kinds.
const (
	Nobody Kind = iota
	Agent       // an MCP client
	Admin       // the person: the socket, the API key, or a session of the web UI
)

// String is how the actor stands in records: "admin", "agent", or the name of
// the token as "agent:NAME".
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

// Principal is what tells actors apart in what is kept for one and nobody else: a
// token is another one than that of the same name before it.
func (a Actor) Principal() string {
	if a.ID != "" {
		return a.String() + "#" + a.ID // no name has this sign
	}
	return a.String()
}
