// Package catalog makes one immutable snapshot of what configuration, upstreams
// and (later) approvals say: the servers, the tools with their effective hints
// and status, the counts, and the search index.
//
// It guarantees that Current is one atomic load, that everything read from one
// Snapshot belongs together, that a snapshot never changes, and that discovery
// and calls see the same hints and the same status. It contacts no server and
// decides no call.
package catalog

import (
	"mcpproxy/internal/policy"
	"mcpproxy/internal/tool"
	"mcpproxy/internal/upstream"
)

// Tool is a tool as the product sees it. It is immutable.
type Tool struct {
	tool.Definition
	Effective tool.Hints // the override where it says something, else the server's
	CallWith  policy.Variant
	Status    policy.Status
}

// Server is a configured server as the product sees it. It is immutable.
type Server struct {
	Name        string
	Protocol    string
	Enabled     bool
	Quarantined bool
	State       upstream.State
	Tools       []*Tool // in the server's order
}

// Hit is one tool that a search found. Score is in (0, 1].
type Hit struct {
	Tool  *Tool
	Score float64
}
