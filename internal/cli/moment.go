package cli

import (
	"strconv"
	"strings"
	"time"
)

// parseTime reads a time as a person types it: a span back from now, or a time
// or a date, in local time unless it says otherwise. The zero time for an empty text.
func (r *run) parseTime(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, ok := span(s); ok {
		return r.Now().Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.DateTime, "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, r.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usage("Invalid value '"+s+"' for "+flag+": must be a span such as 2h or 7d, or a time such as 2026-01-15 10:30:00", "")
}

// span reads a duration that may also count days and weeks.
func span(s string) (time.Duration, bool) {
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return d, true
	}
	for unit, length := range map[string]time.Duration{"d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		number, ok := strings.CutSuffix(s, unit)
		if !ok {
			continue
		}
		if n, err := strconv.ParseUint(number, 10, 16); err == nil && time.Duration(n) < (1<<62)/length {
			return time.Duration(n) * length, true
		}
	}
	return 0, false
}
