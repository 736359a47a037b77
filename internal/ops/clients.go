package ops

import (
	"context"

	"mcpproxy/internal/clients/permission"
)

// ClientOperations implements the daemon's operations on MCP clients. Only users may change a file, and each change is
// recorded.
type ClientOperations struct {
	Account *LocalClients
	Gateway *Gateway
}

// ClientRef identifies a client by its ID, never by a path.
type ClientRef struct {
	Client string `path:"client" doc:"The id of the client, such as claude-code."`
	DryRun bool   `json:"dry_run" doc:"Whether to report the change without making it."`
}

// ConnectRequest is a request to connect a client.
type ConnectRequest struct {
	ClientRef
	ConnectOptions
}

// ClientChangeRef identifies a change of a client's file.
type ClientChangeRef struct {
	Change string `json:"change" required:"true" doc:"The id of the change."`
}

// ListClients returns all supported clients and their connections to MCPProxy.
func (o *ClientOperations) ListClients(context.Context, Caller, Nothing) (ClientList, error) {
	return o.Account.ListClients()
}

// ConnectClient adds MCPProxy to a client's file.
func (o *ClientOperations) ConnectClient(ctx context.Context, c Caller, in ConnectRequest) (FileChange, error) {
	return o.changeFile(ctx, c, "connect_client", in.ClientRef, func() (ConnectPlan, error) { return o.Account.PlanConnect(in.Client, in.ConnectOptions) })
}

// DisconnectClient removes MCPProxy from a client's file.
func (o *ClientOperations) DisconnectClient(ctx context.Context, c Caller, in ClientRef) (FileChange, error) {
	return o.changeFile(ctx, c, "disconnect_client", in, func() (ConnectPlan, error) { return o.Account.PlanDisconnect(in.Client) })
}

// changeFile prepares a change of a client's file, applies it unless it is a dry run, and records it.
func (o *ClientOperations) changeFile(ctx context.Context, c Caller, action string, in ClientRef, prepare func() (ConnectPlan, error)) (FileChange, error) {
	plan, err := prepare()
	if err != nil || in.DryRun || !plan.Changed {
		return plan.FileChange, err
	}
	out := plan.FileChange
	err = o.Gateway.runConfigChange(c, action, plan.Client, func() error {
		out, err = o.Account.ApplyPlan(ctx, c, plan)
		return err
	})
	return out, err
}

// UndoClientChange undoes a change of a client's file.
func (o *ClientOperations) UndoClientChange(_ context.Context, c Caller, in ClientChangeRef) (change PastChange, err error) {
	err = o.Gateway.runConfigChange(c, "undo_client_change", in.Change, func() error {
		change, err = o.Account.UndoChange(in.Change)
		return err
	})
	return change, err
}

// WritePermissionRules writes permission rules to a client's file. Reads then run without asking, and all other calls
// ask.
func (o *ClientOperations) WritePermissionRules(_ context.Context, c Caller, in ClientRef) (permission.Outcome, error) {
	out, err := o.Account.WriteRules(in.Client, true)
	if err != nil || in.DryRun || !out.Changed {
		return out, err
	}
	err = o.Gateway.runConfigChange(c, "write_permissions", out.Client, func() error {
		out, err = o.Account.WriteRules(in.Client, false)
		return err
	})
	return out, err
}
