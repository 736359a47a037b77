package oauth

import (
	"regexp"
	"strings"
)

// bearerChallenge is a server's WWW-Authenticate header.
type bearerChallenge struct {
	metadata string // URL of the protected resource metadata
	scope    string
	err      string
}

// maxChallenge bounds the parsed header.
const maxChallenge = 16 << 10

// challengePart matches a scheme or parameter name, and the parameter's value, quoted or
// not. A quoted value may lack its end.
var challengePart = regexp.MustCompile("^([!#$%&'*+./0-9A-Z^_`a-z|~-]+)" + `(?:[ \t]*=[ \t=]*(?:"((?s:[^"\\]|\\.)*\\?)"?|([^ \t,]*)))?`)

var quotedPair = regexp.MustCompile(`(?s)\\(.)`)

// parseChallenge parses the parameters of a Bearer challenge, and the metadata URL of any
// scheme. It stops at a syntax error; the result only decides where to look.
func parseChallenge(header string) bearerChallenge {
	var c bearerChallenge
	if len(header) > maxChallenge {
		return c
	}
	scheme := ""
	for rest := strings.TrimLeft(header, " \t,"); rest != ""; rest = strings.TrimLeft(rest, " \t,") {
		part := challengePart.FindStringSubmatchIndex(rest)
		if part == nil {
			return c
		}
		name, value := strings.ToLower(rest[:part[3]]), ""
		switch {
		case part[4] >= 0:
			value = quotedPair.ReplaceAllString(rest[part[4]:part[5]], "$1")
		case part[6] >= 0:
			value = rest[part[6]:part[7]]
		default:
			scheme = name
		}
		isParam := part[1] > part[3]
		switch rest = rest[part[1]:]; {
		case !isParam:
		case name == "resource_metadata" && c.metadata == "":
			c.metadata = value
		case name == "scope" && scheme == "bearer" && c.scope == "":
			c.scope = value
		case name == "error" && scheme == "bearer" && c.err == "":
			c.err = value
		}
	}
	return c
}
