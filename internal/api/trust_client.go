package api

import (
	"context"
	"encoding/json"
	"net/http"

	"mcpproxy/internal/gateway"
	"mcpproxy/internal/tool"
)

// Approvals asks for everything that waits for a person.
func (c *Client) Approvals(ctx context.Context) (out gateway.Waiting, err error) {
	return out, c.get(ctx, "/approvals", nil, &out)
}

// AddServer writes a server into the configuration file.
func (c *Client) AddServer(ctx context.Context, s gateway.NewServer) (out gateway.ServerView, err error) {
	return out, c.do(ctx, restartPatience, http.MethodPost, "/servers", s, &out)
}

// RemoveServer takes a server out of the configuration file, or drops a
// proposal.
func (c *Client) RemoveServer(ctx context.Context, name string) (out Removed, err error) {
	return out, c.do(ctx, restartPatience, http.MethodDelete, "/servers/"+segment(name), nil, &out)
}

// EnableServer enables or disables a server.
func (c *Client) EnableServer(ctx context.Context, name string, on bool) (out gateway.ServerView, err error) {
	return out, c.do(ctx, restartPatience, http.MethodPost, "/servers/"+segment(name)+onOff(on), nil, &out)
}

// QuarantineServer puts a server back into quarantine.
func (c *Client) QuarantineServer(ctx context.Context, name string) (out gateway.ServerView, err error) {
	return out, c.do(ctx, restartPatience, http.MethodPost, "/servers/"+segment(name)+"/quarantine", nil, &out)
}

// ChangeServer sets one key of a server in the configuration file; nil takes it
// out.
func (c *Client) ChangeServer(ctx context.Context, name, key string, value json.RawMessage) (out gateway.ServerView, err error) {
	return out, c.do(ctx, restartPatience, http.MethodPatch, "/servers/"+segment(name), map[string]json.RawMessage{key: value}, &out)
}

// ReviewServer asks for what is to be looked at before a server is approved.
func (c *Client) ReviewServer(ctx context.Context, name string) (out gateway.ServerReview, err error) {
	return out, c.get(ctx, "/servers/"+segment(name)+"/review", nil, &out)
}

// ApproveServer approves the stage of a review that has this fingerprint.
func (c *Client) ApproveServer(ctx context.Context, name, fingerprint string) (out gateway.ServerReview, err error) {
	return out, c.do(ctx, restartPatience, http.MethodPost, "/servers/"+segment(name)+"/approve", seen{fingerprint}, &out)
}

// SwitchTool switches a tool on or off.
func (c *Client) SwitchTool(ctx context.Context, id tool.ID, on bool) (out gateway.ToolView, err error) {
	return out, c.do(ctx, patience, http.MethodPost, toolPath(id)+onOff(on), nil, &out)
}

// ApproveTool approves the definition that has this fingerprint.
func (c *Client) ApproveTool(ctx context.Context, id tool.ID, fingerprint string) (out gateway.ToolView, err error) {
	return out, c.do(ctx, patience, http.MethodPost, toolPath(id)+"/approve", seen{fingerprint}, &out)
}

// BlockTool refuses the definition that has this fingerprint.
func (c *Client) BlockTool(ctx context.Context, id tool.ID, fingerprint string) (out gateway.ToolView, err error) {
	return out, c.do(ctx, patience, http.MethodPost, toolPath(id)+"/block", seen{fingerprint}, &out)
}

// DiffTool asks for a tool's definition beside the approved one.
func (c *Client) DiffTool(ctx context.Context, id tool.ID) (out gateway.ToolDiff, err error) {
	return out, c.get(ctx, toolPath(id)+"/diff", nil, &out)
}

// seen is the body of a decision.
type seen struct {
	Fingerprint string `json:"fingerprint"`
}

func toolPath(id tool.ID) string {
	return "/servers/" + segment(id.Server) + "/tools/" + segment(id.Tool)
}

func onOff(on bool) string {
	if on {
		return "/enable"
	}
	return "/disable"
}
