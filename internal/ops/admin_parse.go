package ops

import (
	"context"
)

// ParsePastedServers parses servers from a pasted text and returns them in the form that AddServer accepts. It adds,
// stores and records nothing.
func (a *Admin) ParsePastedServers(_ context.Context, _ Caller, in PastedText) (Parsed, error) {
	return parsePastedServers(in, a.Config(), a.editor.CheckNotSelfReference)
}
