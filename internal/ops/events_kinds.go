package ops

import (
	"context"
)

// ServerLister lists the servers for events.
type ServerLister interface {
	Servers(context.Context, Caller, Nothing) (ServerViews, error)
}
