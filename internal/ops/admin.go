package ops

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/config"
)

// ConfigEditor changes the configuration file and applies each change before it returns. config.LiveConfig implements
// it.
type ConfigEditor interface {
	AddServers(permit config.ConfirmFunc, all ...config.NamedEdit) error
	CheckNewServers(all ...config.NamedEdit) error
	RemoveServer(name string) error
	SetServer(permit config.ConfirmFunc, name, field string, value json.RawMessage) error
	SetHintOverride(permit config.ConfirmFunc, name, tool string, hints json.RawMessage) error
	SetToolSettings(permit config.ConfirmFunc, server, name string, changes []config.ToolSettingChange) error
	// CheckNotSelfReference rejects a launch that connects back to this MCPProxy.
	CheckNotSelfReference(config.Launch) error
}

// Admin implements the read operations of Gateway and the operations that change servers and approvals.
type Admin struct {
	*Gateway
	editor ConfigEditor
	// pinLaunch returns a server with a pin for the version that its command would start now; why tells why it has none.
	// nil: launches are approved as they are. See VersionOperations.
	pinLaunch func(ctx context.Context, s config.Server) (pinned config.Server, why string)
	summaries changeSummaryCache
}

// NewAdmin returns an Admin that edits the configuration through e.
func NewAdmin(g *Gateway, e ConfigEditor) *Admin { return &Admin{Gateway: g, editor: e} }

// serverViewAfter returns the view of the server after an operation, or err if the operation failed.
func (a *Admin) serverViewAfter(ctx context.Context, c Caller, in ServerRef, err error) (ServerView, error) {
	if err != nil {
		return ServerView{}, err
	}
	return a.Server(ctx, c, in)
}
