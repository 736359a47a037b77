package oauth

import "strings"

// challenge is what a server says in WWW-Authenticate about the login it wants.
type challenge struct {
	metadata string // URL of the protected resource metadata
	scope    string
	err      string
}

// maxChallenge bounds the header that is looked at.
const maxChallenge = 16 << 10

// parseChallenge reads the parameters of a Bearer challenge, and the metadata
// URL of whatever scheme. What is malformed ends the reading; nothing of it
// decides more than where to look.
func parseChallenge(header string) challenge {
	var c challenge
	if len(header) > maxChallenge {
		return c
	}
	scheme := ""
	for rest := strings.TrimLeft(header, " \t,"); rest != ""; rest = strings.TrimLeft(rest, " \t,") {
		name, after := token(rest)
		if name == "" {
			return c
		}
		value, next, isParam := parameter(after)
		if !isParam {
			scheme, rest = strings.ToLower(name), after
			continue
		}
		rest = next
		switch key := strings.ToLower(name); {
		case key == "resource_metadata" && c.metadata == "":
			c.metadata = value
		case key == "scope" && scheme == "bearer" && c.scope == "":
			c.scope = value
		case key == "error" && scheme == "bearer" && c.err == "":
			c.err = value
		}
	}
	return c
}

// token cuts the name at the beginning of s.
func token(s string) (name, rest string) {
	i := 0
	for i < len(s) && s[i] > ' ' && s[i] < 0x7f && !strings.ContainsRune(`()<>@,;:\"[]?={}`, rune(s[i])) {
		i++
	}
	// A token68, as after Basic or Negotiate, may hold these too.
	return s[:i], s[i:]
}

// parameter reads ="value" or =value after a name.
func parameter(s string) (value, rest string, ok bool) {
	s, found := strings.CutPrefix(strings.TrimLeft(s, " \t"), "=")
	if !found {
		return "", "", false
	}
	s = strings.TrimLeft(s, " \t=")
	if !strings.HasPrefix(s, `"`) {
		end := strings.IndexAny(s, " \t,")
		if end < 0 {
			end = len(s)
		}
		return s[:end], s[end:], true
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:], true
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b.WriteByte(s[i])
	}
	return b.String(), "", true
}
