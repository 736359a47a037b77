package ops

import (
	"context"
	"crypto/rand"

	"mcpproxy/internal/clients"
	"mcpproxy/internal/config"
)

// Found is a server in a client's file.
type Found struct {
	ID           string        `json:"id" doc:"The id of the server. It changes when the launch changes."`
	Client       string        `json:"client" doc:"The id of the client. Empty if the server comes from a pasted text."`
	ClientName   string        `json:"client_name"`
	Path         string        `json:"path" doc:"The path of the client's file."`
	Target       string        `json:"target,omitempty" doc:"The target of path, if path is a symbolic link."`
	Scope        clients.Scope `json:"scope" doc:"The scope of the file: user, project, or local (one project of the user)."`
	Name         string        `json:"name" doc:"The name of the server in MCPProxy, or the name that an import would give it."`
	Called       string        `json:"called" doc:"The name of the server in the client."`
	Launch       config.Launch `json:"launch" doc:"How the server is started or reached. Probable secrets are masked."`
	Secrets      []InClear     `json:"secrets" doc:"Probable secrets in plain text."`
	AlreadyAdded bool          `json:"have" doc:"Whether MCPProxy already has this server."`
	IsProxy      bool          `json:"ours" doc:"Whether the entry is MCPProxy itself. It is not imported."`
	Notes        []string      `json:"notes" doc:"Differences from the client's file."`
}

// InClear is a plain-text secret in a client's file.
type InClear struct {
	Place string `json:"place" doc:"The position of the secret: env.NAME, headers.NAME, args.INDEX (from 0), command or url."`
	Name  string `json:"name" doc:"The name that the secret would have in the keyring."`
}

// BrokenFile is a file, or a server in it, that cannot be imported.
type BrokenFile struct {
	Client  string `json:"client"`
	Path    string `json:"path"`
	Message string `json:"message"`
	Unread  bool   `json:"-"` // whether the whole file cannot be read
}

// Findings lists all found servers and unreadable files.
type Findings struct {
	Found  []Found      `json:"found"`
	Broken []BrokenFile `json:"broken" doc:"Files that cannot be read, and servers that cannot be imported."`
}

// ImportTarget gives an import access to this MCPProxy.
type ImportTarget struct {
	// ConfigText returns the text of the configuration file, or nil if there is none.
	ConfigText func() ([]byte, error)
	// ServerNames returns the names of all servers, including proposed ones.
	ServerNames func(ctx context.Context) ([]string, error)
	// CheckNotSelf rejects a launch that connects back to this MCPProxy.
	CheckNotSelf func(config.Launch) error
	// ReadSecret returns the value of a secret, or secret.ErrMissing.
	ReadSecret   func(ctx context.Context, name string) (string, error)
	StoreSecret  func(ctx context.Context, name, value string) error
	DeleteSecret func(ctx context.Context, name string) error
	// AddServers adds servers. refused contains the errors of the servers that were not added, by index. If err is not
	// nil, no server is added.
	AddServers   func(context.Context, []AddServerRequest) (views []ServerView, refused []error, err error)
	ChangeServer func(context.Context, ServerChange) error
}

// AddServersOneByOneFunc returns an implementation of ImportTarget.AddServers that adds servers one after the other.
func AddServersOneByOneFunc(add func(AddServerRequest) (ServerView, error)) func(context.Context, []AddServerRequest) ([]ServerView, []error, error) {
	return func(_ context.Context, all []AddServerRequest) ([]ServerView, []error, error) {
		views, refused := make([]ServerView, len(all)), make([]error, len(all))
		for i, s := range all {
			views[i], refused[i] = add(s)
		}
		return views, refused, nil
	}
}

// Importer finds and imports the servers in the files of the MCP clients of one OS account. It uses the journal of
// changes to these files.
type Importer struct {
	env  clients.Env
	open func() (*clients.Journal, error)
	key  [32]byte // key for the hashes used as IDs, so that an ID does not reveal the secrets that it covers
}

// NewImporter returns an Importer. open opens the journal.
func NewImporter(env clients.Env, open func() (*clients.Journal, error)) *Importer {
	a := &Importer{env: env, open: open}
	rand.Read(a.key[:]) // cannot fail
	return a
}
