package config

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

var plainName = regexp.MustCompile(`^[$A-Za-z0-9_-]+$`)

// joinPath returns the path of a member: a.b, or a["b.c"] if b is not a plain name.
func joinPath(path, name string) string {
	switch {
	case !plainName.MatchString(name):
		return path + "[" + quoteClipped(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

// lastPathPart returns the last part of a path, for messages.
func lastPathPart(path string) string {
	if strings.HasSuffix(path, "]") {
		return path[strings.LastIndexByte(path[:max(strings.LastIndexByte(path, '['), 0)], '.')+1:]
	}
	return path[strings.LastIndexByte(path, '.')+1:]
}

// quoteClipped makes s safe to read in a message, and shortens it.
func quoteClipped(s string) string { return strconv.Quote(clipText(s)) }

// clipText shortens quoted text in a message.
func clipText(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// joinAlternatives lists words as in "a, b or c".
func joinAlternatives(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// formatDuration formats a duration without its zero parts.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}
