package clients

import (
	"encoding/json"

	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
)

// ServersFile is what was found in a client's file.
type ServersFile struct {
	Client       string // which client's it seems to be; "" when many write it like this
	Servers      []ServerEntry
	Notes        []Note // on what was left out of the file as a whole
	OmittedNotes int    // notes beyond the bound, of servers or of the file, which are only counted
}

// ServerEntry is a server that a client has.
type ServerEntry struct {
	Name         string // what it can be called here
	OriginalName string // what the client calls it
	Entry        Entry
	Notes        []Note
}

// Entry is a server as it may stand in our file. References are not resolved.
type Entry struct {
	config.Launch
	Protocol      string       `json:"protocol,omitempty"`
	Enabled       *bool        `json:"enabled,omitempty"`
	Quarantined   bool         `json:"quarantined,omitempty"`
	Trust         config.Trust `json:"trust,omitempty"`
	EnabledTools  []string     `json:"enabled_tools,omitempty"`
	DisabledTools []string     `json:"disabled_tools,omitempty"`
	CallTimeout   string       `json:"call_timeout,omitempty"`
}

// JSON is the entry as it is written into our file.
func (e Entry) JSON() (json.RawMessage, error) { return wirejson.Marshal(e) }

// Note says what is different here from what a file says. Line and Column count
// from 1. Key is the client's key, "" when the note is on the server as a whole.
// No note repeats a value that may be a secret.
type Note struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}
