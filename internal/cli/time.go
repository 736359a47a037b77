package cli

import (
	"time"

	"mcpproxy/internal/store/activity"
)

// parseTimeFlag parses a duration before now, a time or a date, in local time by default. It returns the zero time for
// "".
func (r *invocation) parseTimeFlag(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, ok := activity.ParseDuration(s); ok {
		return r.Now().Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, r.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, newUsageError("Invalid value '"+s+"' for "+flag+": must be a span such as 2h or 7d, or a time such as 2026-01-15 10:30:00", "")
}
