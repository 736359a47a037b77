package tool

import (
	"crypto/sha256"
	"encoding/base32"
	"net/url"
	"strings"

	"mcpproxy/internal/mcp"
)

// maxAlias is the maximum length of an alias, in characters.
const maxAlias = 128

// aliasSeparator separates the server from the name. No server name contains it.
const aliasSeparator = "__"

// ToAlias returns the name of a tool or prompt on /mcp/all. It is server__name, unless that is too long, has characters
// that clients reject, or is ambiguous. In these cases, ToAlias replaces the invalid characters and appends a digest of
// both parts.
func ToAlias(server, name string) string {
	plain := server + aliasSeparator + name
	if s, n, ok := SplitAlias(plain); ok && s == server && n == name {
		return plain
	}
	readable := strings.Map(func(r rune) rune {
		if isAliasChar(r) {
			return r
		}
		return '_'
	}, plain)
	return readable[:min(len(readable), maxAlias-1-digestSize)] + "_" + aliasDigest(server, name)
}

// SplitAlias splits an alias that contains both parts unchanged.
func SplitAlias(name string) (server, own string, ok bool) {
	server, own, ok = strings.Cut(name, aliasSeparator)
	foreign := strings.ContainsFunc(name, func(c rune) bool { return !isAliasChar(c) })
	if !ok || server == "" || own == "" || len(name) > maxAlias || foreign || IsDigestedAlias(name) {
		return "", "", false
	}
	return server, own, true
}

// IsDigestedAlias reports whether an alias ends with a digest. Such an alias cannot be split and has to be looked up.
func IsDigestedAlias(name string) bool {
	at := len(name) - digestSize
	return at >= 1 && name[at-1] == '_' && strings.Trim(name[at:], "abcdefghijklmnopqrstuvwxyz234567") == ""
}

func isAliasChar(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.'
}

// digestSize is the length of a digest: 128 bits, so that collisions cannot be
// constructed.
const digestSize = 26

func aliasDigest(server, name string) string {
	sum := sha256.Sum256([]byte(server + ":" + name)) // no server name has a colon
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:digestSize])
}

// aliasURIScheme is the prefix of URIs that contain the name of their server.
const aliasURIScheme = "mcpproxy://"

// aliasAppURIPrefix is the same for user interfaces, because clients accept only URIs with their scheme.
const aliasAppURIPrefix = mcp.AppURIScheme + "mcpproxy/"

// ToAliasURI returns the URI, or URI template, that contains the server name of a resource.
func ToAliasURI(server, uri string) string {
	if rest, ok := strings.CutPrefix(uri, mcp.AppURIScheme); ok && rest != "" {
		return aliasAppURIPrefix + server + "/" + rest
	}
	return aliasURIScheme + server + "/" + uri
}

// SplitAliasURI splits a URI that ToAliasURI returned.
func SplitAliasURI(uri string) (server, own string, ok bool) {
	rest, isApp := strings.CutPrefix(uri, aliasAppURIPrefix)
	if !isApp {
		if rest, ok = strings.CutPrefix(uri, aliasURIScheme); !ok {
			return "", "", false
		}
	}
	server, own, ok = strings.Cut(rest, "/")
	if !ok || server == "" || own == "" {
		return "", "", false
	}
	if isApp {
		own = mcp.AppURIScheme + own
	}
	return server, own, true
}

// LooksLikeAliasURI reports whether a URI has the prefix of ToAliasURI, in any case.
func LooksLikeAliasURI(uri string) bool {
	for _, prefix := range [...]string{aliasURIScheme, aliasAppURIPrefix} {
		if len(uri) >= len(prefix) && strings.EqualFold(uri[:len(prefix)], prefix) {
			return true
		}
	}
	return false
}

// IsAbsoluteURI reports whether a URI has a scheme and no part that clients cannot parse.
func IsAbsoluteURI(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && u.Scheme != "" && (u.Host != "" || u.Scheme != "http" && u.Scheme != "https")
}

// MatchesTemplate reports whether a template (RFC 6570) could expand to a URI: its fixed
// parts occur in order, and each expression that must not be empty has a value.
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
			// The last part must be at the end of the URI, so that the part before it can contain the same text.
			return len(uri) >= len(fixed)+least && strings.HasSuffix(uri, fixed)
		}
		if len(uri) < least {
			return false
		}
		_, uri, ok = strings.Cut(uri[least:], fixed)
	}
	return ok
}
