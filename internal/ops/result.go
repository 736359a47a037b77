package ops

import (
	"context"
	"encoding/json"

	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/result"
)

// ReadResult returns a part of a stored large result as JSON. A handle is valid only for the actor of the call, and
// only while the tool is in its scope and the server is not quarantined.
func (g *Gateway) ReadResult(ctx context.Context, req ReadResultRequest) (json.RawMessage, error) {
	stored, gone := g.LoadStoredResult(ctx, &req.Caller, req.Handle)
	if gone != nil {
		return nil, gone
	}
	from := result.ReadOptions{Handle: req.Handle, Path: req.Path, Offset: req.Offset, Limit: req.Limit}
	var part result.Part
	var err error
	if e, bad := policy.ParseSelection(req.Select); bad != nil {
		return nil, bad
	} else if e != nil {
		part, err = result.ReadSelected(stored.Body, from, e)
	} else {
		part, err = result.ReadPart(stored.Body, from)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(part)
}
