package app

import (
	"context"

	"mcpproxy/internal/ops"
	"mcpproxy/internal/store/activity"
)

// signatureCheckingLog is a log whose verification also requires valid signatures of all decisions.
type signatureCheckingLog struct {
	*activity.Log
	access *ops.AccessOperations
}

// Verify implements ops.HistoryLog.
func (l signatureCheckingLog) Verify(ctx context.Context) (activity.Verification, error) {
	v, err := l.Log.Verify(ctx)
	if err != nil || !v.OK {
		return v, err
	}
	p, err := l.access.Presence(ctx, ops.Caller{}, ops.Nothing{})
	if err != nil {
		return v, err
	}
	if why := p.UnprovenReason(); why != "" {
		v.OK, v.FirstBreak = false, &activity.Break{Reason: why}
	}
	return v, nil
}
