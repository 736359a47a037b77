package ops

import (
	"context"
	"strings"
	"sync"

	"mcpproxy/internal/problem"
)

// ImportOperations has the daemon's operations to import servers from MCP clients. Only users may change anything; changes are recorded.
type ImportOperations struct {
	account   *Importer
	targetFor func(Caller) ImportTarget
	gateway   *Gateway
	importMu  sync.Mutex // serializes imports: each sees what the previous one has added
}

// NewImportOperations returns ImportOperations. targetFor gives access to the daemon for a caller.
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

// ImportServers imports servers. It reads the clients' files again; an unknown id is an error, and then nothing is done.
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
