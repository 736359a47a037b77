package ops

import (
	"context"
)

// ParsePastedServers parses servers from a pasted text into the form that AddServer takes. It adds, stores and records nothing.
func (a *Admin) ParsePastedServers(_ context.Context, _ Caller, in PastedText) (Parsed, error) {
	return parsePastedServers(in, a.Config(), a.editor.CheckNotSelfReference)
}
