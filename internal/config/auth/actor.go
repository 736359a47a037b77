package auth

// Actor is the identity of a caller. The zero value has the kind Nobody, which has no rights.
type Actor struct {
	Kind Kind
	// Name and ID identify the agent token or the user; empty if there is none.
	Name, ID string
	// Role is the role of a user. It is NoRole for other actors.
	Role Role
	// FromWebUI is set for a session of the web UI.
	FromWebUI bool
}

// Kind is the kind of an actor.
type Kind uint8

// The kinds.
const (
	Nobody Kind = iota
	Agent       // an MCP client, or a user without admin rights
	Admin       // the user, identified by the socket, the API key, a session of the web UI, or an access token
)

// UserPrefix precedes the name of a user in records.
const UserPrefix = "user:"

// String returns the actor as recorded: "admin", "agent", "agent:NAME" with the token's name, or "user:NAME".
func (a Actor) String() string {
	switch {
	case a.Role != NoRole:
		return UserPrefix + a.Name
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
	if a.Role != NoRole {
		return "user#" + a.ID // the name may change
	}
	if a.ID != "" {
		return a.String() + "#" + a.ID // no token name contains '#'
	}
	return a.String()
}

// TokenName returns the name of the agent token; "" for other actors.
func (a Actor) TokenName() string {
	if a.Role != NoRole {
		return ""
	}
	return a.Name
}

// SeesOnlyOwn reports whether the actor may see only its own records.
func (a Actor) SeesOnlyOwn() bool { return a.Kind != Admin && a.Role != NoRole }

// AnswersOnlyOwn reports whether the actor is a user that may answer only questions about its own calls.
func (a Actor) AnswersOnlyOwn() bool { return a.Kind != Admin && a.Role == RoleUser }
