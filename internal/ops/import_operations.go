package ops

import (
	"context"
	"strings"
	"sync"

	"mcpproxy/internal/problem"
)

// ImportOperations implements the daemon's operations that import servers from MCP clients. Only users may change
// anything, and changes are recorded.
type ImportOperations struct {
	account   *Importer
	targetFor func(Caller) ImportTarget
	gateway   *Gateway
	importMu  sync.Mutex // serializes imports, so that each sees the servers that the previous one added
}

// NewImportOperations returns an ImportOperations. targetFor returns the import target for a caller.
func NewImportOperations(a *Importer, targetFor func(Caller) ImportTarget, g *Gateway) *ImportOperations {
	return &ImportOperations{account: a, targetFor: targetFor, gateway: g}
}

// ImportRequest selects the servers to import.
type ImportRequest struct {
	IDs []string `json:"ids" required:"true" doc:"The ids of 1 to 1,000 servers from GET /clients/servers."`
	ImportOptions
}

// Example returns an example for the OpenAPI document.
func (ImportRequest) Example() string {
	return `{"ids": ["…"], "keyring": true, "confirmed": true} with ids of GET /clients/servers`
}

// FindServers finds the servers in the files of this account's MCP clients.
func (o *ImportOperations) FindServers(ctx context.Context, c Caller, _ Nothing) (Findings, error) {
	h, err := o.account.FindServers(ctx, o.targetFor(c), "")
	if err != nil {
		return Findings{}, err
	}
	return h.Findings, nil
}

// ImportServers imports servers. It reads the clients' files again. If an ID is unknown, it imports nothing and returns
// an error.
func (o *ImportOperations) ImportServers(ctx context.Context, c Caller, in ImportRequest) (out Results, err error) {
	o.importMu.Lock()
	defer o.importMu.Unlock()
	h, err := o.account.FindServers(ctx, o.targetFor(c), "")
	if err != nil {
		return Results{}, err
	}
	chosen, err := h.selectByIDs(in.IDs)
	if err != nil {
		return Results{}, err
	}
	if in.DryRun {
		return h.ImportServers(ctx, in.IDs, in.ImportOptions)
	}
	var names []string
	for _, i := range chosen {
		names = append(names, h.all[i].Name)
	}
	err = o.gateway.runConfigChange(c, "import_servers", problem.ClipName(strings.Join(names, ", ")), func() error {
		out, err = h.ImportServers(ctx, in.IDs, in.ImportOptions)
		return err
	})
	return out, err
}
