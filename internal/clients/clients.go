package clients

import (
	"encoding/json"
	"path/filepath"

	"mcpproxy/internal/clients/textedit"
)

// Client is what is known of one.
type Client struct {
	ID, Name string
	// HTTP says that it connects to addresses; else it starts commands alone.
	HTTP bool
	// Reload is what a person does until a change of its files counts, "" for nothing.
	Reload string

	aliases      []string // other words for it
	programs     []string // that show that it is installed
	installPaths func(Env) []string
	files        func(Env) []File
	target       func(Env) File
	entry        func(Address) entryObject
	add          func(name string, a Address) []string // its own command; nil for none
	remove       func(name string) []string
}

// Scope says whose a file is.
type Scope string

// The scopes of files.
const (
	Managed Scope = "managed" // an administrator's
	User    Scope = "user"
	Project Scope = "project"
	Local   Scope = "local"  // the user's, for one project
	System  Scope = "system" // of the whole machine, weaker than the user's
)

// File is one that a client reads. Key leads to the object of servers in it.
type File struct {
	Scope  Scope
	Path   string
	Format textedit.Format
	Key    []string
}

// Files are all that may hold servers, the weakest first.
func (c Client) Files(e Env) []File { return c.files(e) }

// Target is the user's file into which a server is written.
func (c Client) Target(e Env) File {
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

// AllowedRoots are the directories below which a link of one of its files may lead: the
// account's, and the file's own.
func (f File) AllowedRoots(e Env) []string { return []string{e.Home, filepath.Dir(f.Path)} }

// Installed returns what shows that the client is installed, a program or a path.
func (c Client) Installed(e Env) (by string, ok bool) {
	for _, program := range c.programs {
		if path := e.findProgram(program); path != "" {
			return path, true
		}
	}
	signs := []string{c.Target(e).Path}
	if c.installPaths != nil {
		signs = append(signs, c.installPaths(e)...)
	}
	for _, path := range signs {
		if filepath.IsAbs(path) && Exists(path) {
			return path, true
		}
	}
	return "", false
}

// findProgram is the client's own, "" when it is not on the path.
func (c Client) program(e Env) string {
	if len(c.programs) == 0 {
		return ""
	}
	return e.findProgram(c.programs[0])
}

// AddCommand is the client's own command that adds a server, nil where there is none
// on this machine, or where it would show a token to other users.
func (c Client) AddCommand(e Env, name string, a Address) []string {
	if c.add == nil || a.Token != "" || c.program(e) == "" {
		return nil
	}
	return c.add(name, a)
}

// RemoveCommand is the client's own command that removes a server, or nil.
func (c Client) RemoveCommand(e Env, name string) []string {
	if c.remove == nil || c.program(e) == "" {
		return nil
	}
	return c.remove(name)
}

// Entry is MCPProxy as the client writes a server. The order of members is the usual
// one.
func (c Client) Entry(a Address) (json.RawMessage, error) { return c.entry(a).MarshalJSON() }
