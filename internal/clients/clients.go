package clients

import (
	"encoding/json"
	"path/filepath"

	"mcpproxy/internal/clients/textedit"
)

// Client describes an MCP client.
type Client struct {
	ID, Name string
	// HTTP reports whether the client connects to URLs. Otherwise it only starts commands.
	HTTP bool
	// Reload describes the user's action after which changed files take effect, "" if none is needed.
	Reload string

	aliases      []string // other names for the client
	programs     []string // executables that show that the client is installed
	installPaths func(Env) []string
	files        func(Env) []File
	target       func(Env) File
	entry        func(ProxyAddress) entryObject
	namedEntry   func(name string, a ProxyAddress) entryObject                     // if entries repeat their name
	add          func(name string, a ProxyAddress, entry json.RawMessage) []string // the client's command; may be nil
	remove       func(name string) []string
}

// Scope is the scope of a file.
type Scope string

// The scopes.
const (
	Managed Scope = "managed" // set by an administrator
	User    Scope = "user"
	Project Scope = "project"
	Local   Scope = "local"  // set by the user for one project
	System  Scope = "system" // machine-wide, with lower precedence than User
)

// File is a file that a client reads. Key is the path of its servers object.
type File struct {
	Scope  Scope
	Path   string
	Format textedit.Format
	Key    []string
}

// Files returns all files that may contain servers, lowest precedence first.
func (c Client) Files(e Env) []File { return c.files(e) }

// TargetFile returns the user's file into which a server is written.
func (c Client) TargetFile(e Env) File {
	if c.target != nil {
		return c.target(e)
	}
	for _, f := range c.files(e) {
		if f.Scope == User {
			return f
		}
	}
	return File{}
}

// AllowedLinkRoots returns the directories that the target of a symbolic link may be in: the home directory, and the
// file's own directory.
func (f File) AllowedLinkRoots(e Env) []string { return []string{e.Home, filepath.Dir(f.Path)} }

// FindInstallation returns the evidence that the client is installed: a program or a path.
func (c Client) FindInstallation(e Env) (by string, ok bool) {
	for _, program := range c.programs {
		if path := e.findProgram(program); path != "" {
			return path, true
		}
	}
	signs := []string{c.TargetFile(e).Path}
	if c.installPaths != nil {
		signs = append(signs, c.installPaths(e)...)
	}
	for _, path := range signs {
		if filepath.IsAbs(path) && PathExists(path) {
			return path, true
		}
	}
	return "", false
}

// programPath returns the path of the client's program, or "" if it is not in the PATH.
func (c Client) programPath(e Env) string {
	if len(c.programs) == 0 {
		return ""
	}
	return e.findProgram(c.programs[0])
}

// CommandToAddServer returns the client's own command that adds a server. It returns nil if there is none, or if the
// command would show a token to other users.
func (c Client) CommandToAddServer(e Env, name string, a ProxyAddress) []string {
	if c.add == nil || a.Token != "" || c.programPath(e) == "" {
		return nil
	}
	entry, err := c.newEntry(name, a).MarshalJSON()
	if err != nil {
		return nil
	}
	return c.add(name, a, entry)
}

// CommandToRemoveServer returns the client's own command that removes a server, or nil.
func (c Client) CommandToRemoveServer(e Env, name string) []string {
	if c.remove == nil || c.programPath(e) == "" {
		return nil
	}
	return c.remove(name)
}

// NewProxyEntry returns MCPProxy's entry in the client's format, with members in the usual order.
func (c Client) NewProxyEntry(a ProxyAddress) (json.RawMessage, error) {
	return c.newEntry(DefaultServerName, a).MarshalJSON()
}

// newEntry returns an entry with that name. An entry for the search surface contains the members that keep the client
// from deferring its tools.
func (c Client) newEntry(name string, a ProxyAddress) entryObject {
	entry := c.entry
	if c.namedEntry != nil {
		entry = func(a ProxyAddress) entryObject { return c.namedEntry(name, a) }
	}
	o := entry(a)
	if a.isSearch() {
		o = append(o, c.SurfaceFacts().keepLoaded...)
	}
	return o
}
