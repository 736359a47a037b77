package ops

import (
	"context"
	"crypto/rand"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/config"
)

// Found is a server in a client's file.
type Found struct {
	ID         string        `json:"id" doc:"Identifies this server with its current launch: another launch has another id."`
	Client     string        `json:"client" doc:"The client's id; empty for a text that was given."`
	ClientName string        `json:"client_name"`
	Path       string        `json:"path" doc:"The client's file."`
	Target     string        `json:"target,omitempty" doc:"The file that the path leads to, where it is a link."`
	Scope      clients.Scope `json:"scope" doc:"Whose file it is: user, project, or local (the user's, for one project)."`
	Name       string        `json:"name" doc:"What it is, or would be, called here."`
	Called     string        `json:"called" doc:"What the client calls it."`
	Launch     config.Launch `json:"launch" doc:"Its launch, with probable secrets masked."`
	Secrets    []InClear     `json:"secrets" doc:"Probable secrets in plain text."`
	Have       bool          `json:"have" doc:"A server like this is here already."`
	Ours       bool          `json:"ours" doc:"It is MCPProxy itself, and left out."`
	Notes      []string      `json:"notes" doc:"Differences from the client's file."`
}

// InClear is a secret in clear text in a client's file.
type InClear struct {
	Place string `json:"place" doc:"Where: env.NAME, headers.NAME, args.INDEX from 0, command, or url."`
	Name  string `json:"name" doc:"Under which name the keyring would keep it."`
}

// BrokenFile is a file, or a server in it, that cannot be imported.
type BrokenFile struct {
	Client  string `json:"client"`
	Path    string `json:"path"`
	Message string `json:"message"`
	Unread  bool   `json:"-"` // the whole file cannot be read
}

// Findings lists all servers found.
type Findings struct {
	Found  []Found      `json:"found"`
	Broken []BrokenFile `json:"broken" doc:"What cannot be read, and servers that are left out."`
}

// ImportTarget is the access of an import to this MCPProxy.
type ImportTarget struct {
	// ConfigText returns the configuration file, nil without one.
	ConfigText func() ([]byte, error)
	// ServerNames returns the names of all servers, including proposed ones.
	ServerNames func(ctx context.Context) ([]string, error)
	// CheckNotSelf rejects a launch that connects back to this MCPProxy.
	CheckNotSelf func(config.Launch) error
	// ReadSecret returns the value of a secret, or secret.ErrMissing.
	ReadSecret   func(ctx context.Context, name string) (string, error)
	StoreSecret  func(ctx context.Context, name, value string) error
	DeleteSecret func(ctx context.Context, name string) error
	// AddServers adds servers. refused has the error of each server, by index; the others are added. If err is not nil, none is added.
	AddServers   func(context.Context, []AddServerRequest) (views []ServerView, refused []error, err error)
	ChangeServer func(context.Context, ServerChange) error
}

// AddServersOneByOneFunc returns an ImportTarget.AddServers that adds servers one after the other.
func AddServersOneByOneFunc(add func(AddServerRequest) (ServerView, error)) func(context.Context, []AddServerRequest) ([]ServerView, []error, error) {
	return func(_ context.Context, all []AddServerRequest) ([]ServerView, []error, error) {
		views, refused := make([]ServerView, len(all)), make([]error, len(all))
		for i, s := range all {
			views[i], refused[i] = add(s)
		}
		return views, refused, nil
	}
}

// Importer finds and imports the servers in the files of MCP clients. It has the MCP clients of one OS account and the journal of changes to their files.
type Importer struct {
	env  clients.Env
	open func() (*clients.Journal, error)
	key  [32]byte // key of the ids, which cover secrets and must not reveal them
}

// NewImporter returns an Importer. open opens the journal.
func NewImporter(env clients.Env, open func() (*clients.Journal, error)) *Importer {
	a := &Importer{env: env, open: open}
	rand.Read(a.key[:]) // never fails
	return a
}
