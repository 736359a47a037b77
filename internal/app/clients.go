package app

import (
	"path/filepath"
	"runtime"

	"mcpproxy/internal/builtin"
	"mcpproxy/internal/clients"
	"mcpproxy/internal/permission"
	"mcpproxy/internal/userfile"
)

// permissions are the clients of the account that MCPProxy runs in. A daemon belongs
// to no project: only what counts everywhere is looked at.
func (d *daemon) permissions(dataDir string) (*permission.Account, error) {
	env, err := clients.SystemEnv(runtime.GOOS)
	env.Dir = ""
	return &permission.Account{
		Env:   env,
		Tools: func() []permission.Tool { return permission.Tools(builtin.Definitions(d.live.Current().MCPManagement)) },
		Open:  func() (*userfile.Journal, error) { return userfile.Open(filepath.Join(dataDir, "client_changes")) },
	}, err
}
