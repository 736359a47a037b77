package pin

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// release is the form of a version without pre-releases.
var release = regexp.MustCompile(`^v?(\d+!)?\d+(\.\d+)*(\.post\d+)?$`)

// newestVersion returns the highest final version, or the last one if there is none.
func newestVersion(all []string) (best string) {
	for _, v := range all {
		if release.MatchString(v) && (best == "" || compareReleases(v, best) > 0) {
			best = v
		}
	}
	if best == "" && len(all) > 0 {
		best = all[len(all)-1]
	}
	return best
}

// compareReleases compares final versions by their numbers.
func compareReleases(a, b string) int {
	x, y := numbers(a), numbers(b)
	for i := range max(len(x), len(y)) {
		if c := cmp.Compare(at(x, i), at(y, i)); c != 0 {
			return c
		}
	}
	return 0
}

func at(all []int, i int) int {
	if i < len(all) {
		return all[i]
	}
	return 0
}

func numbers(v string) (all []int) {
	epoch, rest, found := strings.Cut(v, "!")
	if !found {
		epoch, rest = "0", v
	}
	for _, part := range append([]string{epoch}, strings.FieldsFunc(rest, func(c rune) bool { return c < '0' || c > '9' })...) {
		n, _ := strconv.Atoi(part)
		all = append(all, n)
	}
	return all
}

// fileVersion returns the version in the name of a wheel or a source archive of a package; "" if there is none.
func fileVersion(file, name string) string {
	same := func(s string) string {
		return strings.ToLower(strings.Map(func(c rune) rune {
			if c == '-' || c == '.' {
				return '_'
			}
			return c
		}, s))
	}
	for _, kind := range []string{".whl", ".tar.gz", ".zip"} {
		stem, ok := strings.CutSuffix(file, kind)
		if !ok || len(stem) <= len(name) || same(stem[:len(name)]) != same(name) || stem[len(name)] != '-' {
			continue
		}
		return slices.Concat(strings.SplitN(stem[len(name)+1:], "-", 2))[0]
	}
	return ""
}
