package app

import (
	"context"

	"mcpproxy/internal/ops"
	"mcpproxy/internal/store/activity"
)

// provenLog is the log, which is as it was written only when what persons have decided is
// signed, too.
type provenLog struct {
	*activity.Log
	access *ops.Access
}

// Verify implements ops.HistoryLog.
func (l provenLog) Verify(ctx context.Context) (activity.Verification, error) {
	v, err := l.Log.Verify(ctx)
	if err != nil || !v.OK {
		return v, err
	}
	p, err := l.access.Presence(ctx, ops.Caller{}, ops.Nothing{})
	if err != nil {
		return v, err
	}
	if why := p.Unproven(); why != "" {
		v.OK, v.FirstBreak = false, &activity.Break{Reason: why}
	}
	return v, nil
}
