package app

import (
	"context"

	"mcpproxy/internal/access"
	"mcpproxy/internal/activity"
	"mcpproxy/internal/gateway"
)

// provenLog is the log, which is as it was written only when what persons have decided is
// signed, too.
type provenLog struct {
	*activity.Log
	access *access.Access
}

// Verify implements history.Log.
func (l provenLog) Verify(ctx context.Context) (activity.Verification, error) {
	v, err := l.Log.Verify(ctx)
	if err != nil || !v.OK {
		return v, err
	}
	p, err := l.access.Presence(ctx, gateway.Caller{}, gateway.Nothing{})
	if err != nil {
		return v, err
	}
	if why := p.Unproven(); why != "" {
		v.OK, v.FirstBreak = false, &activity.Break{Reason: why}
	}
	return v, nil
}
