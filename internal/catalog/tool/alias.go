package tool

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"
)

// maxAlias is the longest name, in characters.
const maxAlias = 128

// separator stands between the server and its own name for something. No
// server has it in its name.
const separator = "__"

// Alias returns the name of a tool or a prompt of a server among those of all. It is
// server__name, unless that is too long, has characters that clients do not
// take, or could be read as something else: then these are replaced, and a
// digest of both parts stands at its end.
func Alias(server, name string) string {
	plain := server + separator + name
	if s, n, ok := SplitAlias(plain); ok && s == server && n == name {
		return plain
	}
	readable := strings.Map(func(r rune) rune {
		if allowed(r) {
			return r
		}
		return '_'
	}, plain)
	return readable[:min(len(readable), maxAlias-1-digestSize)] + "_" + digest(server, name)
}

// SplitAlias returns what a name stands for that holds both parts as they are.
func SplitAlias(name string) (server, own string, ok bool) {
	server, own, ok = strings.Cut(name, separator)
	foreign := strings.ContainsFunc(name, func(c rune) bool { return !allowed(c) })
	if !ok || server == "" || own == "" || len(name) > maxAlias || foreign || IsDigestedAlias(name) {
		return "", "", false
	}
	return server, own, true
}

// IsDigestedAlias reports whether a name has the form of those that end with a digest.
// What they stand for has to be looked up.
func IsDigestedAlias(name string) bool {
	at := len(name) - digestSize
	return at >= 1 && name[at-1] == '_' && strings.Trim(name[at:], "abcdefghijklmnopqrstuvwxyz234567") == ""
}

func allowed(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.'
}

// digestSize is the length of a digest: 128 bits, so that nobody finds two
// names with the same one.
const digestSize = 26

func digest(server, name string) string {
	sum := sha256.Sum256([]byte(server + ":" + name)) // no server has a colon in its name
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:digestSize])
}

// scheme is what addresses begin with that name their server.
const scheme = "mcpproxy://"

// AliasURI returns the address of a resource, or the template of addresses, that names
// the server.
func AliasURI(server, uri string) string { return scheme + server + "/" + uri }

// SplitAliasURI returns what an address stands for that names its server.
func SplitAliasURI(uri string) (server, own string, ok bool) {
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return "", "", false
	}
	server, own, ok = strings.Cut(rest, "/")
	return server, own, ok && server != "" && own != ""
}

// NamesServer reports whether an address is, or looks like, one that names its
// server.
func NamesServer(uri string) bool {
	return len(uri) >= len(scheme) && strings.EqualFold(uri[:len(scheme)], scheme)
}

// MatchesTemplate reports whether an address could be made from a template (RFC 6570):
// its fixed parts are there in their order, and something stands for each
// expression that must not be empty.
func MatchesTemplate(template, uri string) bool {
	first, rest, found := strings.Cut(template, "{")
	if !found {
		return template == uri
	}
	uri, ok := strings.CutPrefix(uri, first)
	for ok && found {
		var expression, fixed string
		if expression, rest, ok = strings.Cut(rest, "}"); !ok {
			return false
		}
		least := 1
		if expression != "" && strings.IndexByte("?&#./;", expression[0]) >= 0 {
			least = 0
		}
		if fixed, rest, found = strings.Cut(rest, "{"); !found {
			// The end of the address, so that the part before it can hold the same.
			return len(uri) >= len(fixed)+least && strings.HasSuffix(uri, fixed)
		}
		if len(uri) < least {
			return false
		}
		_, uri, ok = strings.Cut(uri[least:], fixed)
	}
	return ok
}
