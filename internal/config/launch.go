package config

import (
	"crypto/sha256"
	"encoding/json"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/upstream/sandbox"
)

// Launch is how a server is launched or reached. The JSON tags are for the file and for package api.
type Launch struct {
	Command    string            `json:"command,omitempty" doc:"The program to start. Set either command or url."`
	Args       []string          `json:"args,omitempty" doc:"Its arguments."`
	Env        map[string]string `json:"env,omitempty" doc:"Its environment variables, by name. Values may contain references such as ${env:NAME} or ${keyring:NAME}."`
	WorkingDir string            `json:"working_dir,omitempty" doc:"Its working directory."`
	URL        string            `json:"url,omitempty" doc:"The URL of the server. Set either command or url."`
	Headers    map[string]string `json:"headers,omitempty" doc:"The HTTP headers to send, by name. Values may contain references such as ${env:NAME} or ${keyring:NAME}."`
}

// LaunchView is a launch as a user approves it before the server is started or contacted. It contains only the names
// of environment variables and headers, because their values may be secrets and may change. Its JSON is
// fingerprinted.
type LaunchView struct {
	Protocol   string   `json:"protocol"`
	Command    string   `json:"command"`
	Args       []string `json:"args"`
	Env        []string `json:"env"`
	WorkingDir string   `json:"working_dir"`
	URL        string   `json:"url"`
	Headers    []string `json:"headers"`
	// Sandbox is nil for a server without a sandbox.
	Sandbox *sandbox.Rules `json:"sandbox,omitempty"`
}

func (l LaunchView) fingerprint() tool.Fingerprint {
	text, err := json.Marshal(l)
	if err != nil {
		panic("strings always encode: " + err.Error())
	}
	return sha256.Sum256(append([]byte("mcpproxy launch "), text...))
}
