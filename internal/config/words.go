package config

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

var plainName = regexp.MustCompile(`^[$A-Za-z0-9_-]+$`)

// join makes the path of a member: a.b, or a["b.c"] when b is no plain name.
func join(path, name string) string {
	switch {
	case !plainName.MatchString(name):
		return path + "[" + quote(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// label is the last part of a path, for messages.
func label(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[strings.LastIndexByte(path[:max(strings.LastIndexByte(path, '['), 0)], '.')+1:]
	}
	return path[strings.LastIndexByte(path, '.')+1:]
}

// quote makes s safe to read in a message, and not too long.
func quote(s string) string { return strconv.Quote(clip(s)) }

// clip shortens what is repeated in a message.
func clip(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// alternatives lists words as in "a, b or c".
func alternatives(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// short writes a duration without its zero parts.
func short(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

// nearest gives the word that was probably meant by name.
func nearest(name string, words []string) (string, bool) {
	best, least := "", 1<<30
	name = squeezed(name)
	for _, w := range words {
		s := squeezed(w)
		n := distance(name, s)
		if len(name) >= 4 && (strings.Contains(s, name) || strings.Contains(name, s) && len(s) >= 4) {
			n = min(n, 2) // a part of the word: timeout, servers
		}
		if n < least {
			best, least = w, n
		}
	}
	return best, least <= max(2, len(name)/3) && least < len(name)
}

// squeezed leaves out what people write in different ways.
func squeezed(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || r == '$' {
			return -1
		}
		return r
	}, strings.ToLower(clip(s)))
}

// distance counts the letters to insert, delete, change or swap with their
// neighbour to get from a to b.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(last[j]+1, next[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, last = last, next
	}
	return last[len(b)]
}
