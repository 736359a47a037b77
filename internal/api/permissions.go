package api

import (
	"context"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/permission"
)

// WritePermissions is the operation on the permissions that clients have for
// MCPProxy's tools.
var WritePermissions = declare("POST /clients/{client}/permissions", "writePermissions", Decide,
	"Write the rules into a client's file with which reads run unasked and the rest asks, or say what would change", writePermissions)

// ClientPermissions names a client, by its id: never by a path.
type ClientPermissions struct {
	Client string `path:"client" doc:"The id of the client, such as claude-code."`
	DryRun bool   `json:"dry_run" doc:"Only say what would change."`
}

func writePermissions(a *permission.Account, _ context.Context, _ gateway.Caller, in ClientPermissions) (permission.Outcome, error) {
	return a.Write(in.Client, in.DryRun)
}
