package clients

import (
	"encoding/json"

	"mcpproxy/internal/config"
	"mcpproxy/internal/mcp/wirejson"
)

// ImportedServers contains the servers found in a client's file.
type ImportedServers struct {
	Client       string // the detected client; "" if ambiguous
	Servers      []ImportedServer
	Notes        []Note // about the file as a whole
	OmittedNotes int    // number of notes beyond the limit
}

// ImportedServer is one server from a client's file.
type ImportedServer struct {
	Name         string // unique valid name
	OriginalName string // the client's name for it
	Entry        ConfigEntry
	Notes        []Note
}

// ConfigEntry is a server in the form of a configuration entry. References are not resolved.
type ConfigEntry struct {
	config.Launch
	Protocol      string       `json:"protocol,omitempty"`
	Enabled       *bool        `json:"enabled,omitempty"`
	Quarantined   bool         `json:"quarantined,omitempty"`
	Trust         config.Trust `json:"trust,omitempty"`
	EnabledTools  []string     `json:"enabled_tools,omitempty"`
	DisabledTools []string     `json:"disabled_tools,omitempty"`
	CallTimeout   string       `json:"call_timeout,omitempty"`
}

// JSON returns the entry as it is written into the configuration file.
func (e ConfigEntry) JSON() (json.RawMessage, error) { return wirejson.MarshalWithoutHTMLEscape(e) }

// Note describes a difference between the entry and the client's file. Line and Column count from 1. Key is the
// client's key, or "" for the server as a whole. A note never contains a value that may be a secret.
type Note struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}
