package ops

import (
	"context"
)

// Servers lists the servers for events.
type Servers interface {
	Servers(context.Context, Caller, Nothing) (ServerViews, error)
}
