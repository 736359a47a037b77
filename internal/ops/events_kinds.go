package ops

import (
	"context"
)

// Servers returns the servers as they are shown.
type Servers interface {
	Servers(context.Context, Caller, Nothing) (ServerViews, error)
}
