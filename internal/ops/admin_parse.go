package ops

import (
	"context"
)

// parseServers reads the servers of a text that a person has pasted, as AddServer
// takes them. Nothing is added, stored or on record.
func (a *Admin) ParseServers(_ context.Context, _ Caller, in Pasted) (Parsed, error) {
	return parseServers(in, a.Config(), a.editor.CheckNotSelf)
}
