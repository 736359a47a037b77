package activity

import (
	"strconv"
	"strings"
	"time"
)

// ParseDuration parses a duration, which may also be in days or weeks: 90s, 2h, 7d, 2w. ok is false if s is not a
// duration.
func ParseDuration(s string) (time.Duration, bool) {
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
