package tool

import "strings"

// Skeleton is the same for names of servers that a person may take for each
// other: they differ in case, in characters that look alike (0 and o; 1, l and
// i; 5 and s; rn and m; vv and w), or in dots, dashes and underscores alone.
func Skeleton(server string) string {
	return lookAlikes.Replace(separators.Replace(strings.ToLower(server)))
}

var (
	separators = strings.NewReplacer(".", "", "-", "", "_", "")
	lookAlikes = strings.NewReplacer("0", "o", "1", "l", "i", "l", "5", "s", "rn", "m", "vv", "w")
)
