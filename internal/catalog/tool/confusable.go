package tool

import "strings"

// ConfusableSkeleton returns the same text for server names that a user may confuse. These differ only in case, in similar
// characters (0 and o; 1, l and i; 5 and s; rn and m; vv and w), or in dots, dashes and underscores.
func ConfusableSkeleton(server string) string {
	return lookAlikes.Replace(separators.Replace(strings.ToLower(server)))
}

var (
	separators = strings.NewReplacer(".", "", "-", "", "_", "")
	lookAlikes = strings.NewReplacer("0", "o", "1", "l", "i", "l", "5", "s", "rn", "m", "vv", "w")
)
