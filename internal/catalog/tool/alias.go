package tool

import (
	"crypto/sha256"
	"encoding/base32"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mcpproxy/internal/mcp"
)

// The maximum lengths of an alias, in characters. Model APIs reject a request with all its tools for a longer name, or
// for one with a dot. Earlier versions listed names with dots and up to maxFormerAlias characters.
const (
	maxAlias       = 64
	maxFormerAlias = 128
)

// aliasSeparator separates the server from the name. No server name contains it.
const aliasSeparator = "__"

// ToAlias returns the name of a tool or prompt on /mcp/all. It is server__name, unless that is too long, has characters
// that clients reject, or is ambiguous. In these cases, ToAlias replaces the invalid characters and appends a digest of
// both parts.
func ToAlias(server, name string) string {
	return toAlias(server, name, maxAlias, func(r rune) bool { return r != '.' && isAliasChar(r) })
}

// FormerAlias returns the name that earlier versions listed. Clients may still use it.
func FormerAlias(server, name string) string {
	return toAlias(server, name, maxFormerAlias, isAliasChar)
}

func toAlias(server, name string, limit int, listed func(rune) bool) string {
	plain := server + aliasSeparator + name
	readable := strings.Map(func(r rune) rune {
		if listed(r) {
			return r
		}
		return '_'
	}, plain)
	if s, n, ok := SplitAlias(readable); ok && s == server && n == name && len(plain) <= limit {
		return plain
	}
	return readable[:min(len(readable), limit-1-digestSize)] + "_" + aliasDigest(server, name)
}

// SplitAlias splits an alias that contains both parts unchanged. It also accepts the names of earlier versions.
func SplitAlias(name string) (server, own string, ok bool) {
	server, own, ok = strings.Cut(name, aliasSeparator)
	foreign := strings.ContainsFunc(name, func(c rune) bool { return !isAliasChar(c) })
	if !ok || server == "" || own == "" || len(name) > maxFormerAlias || foreign || IsDigestedAlias(name) {
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

var (
	uriStart   = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*):(?://([^/?#]*))?`)
	domainName = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	numberPart = regexp.MustCompile(`^(0[xX][0-9a-fA-F]*|[0-9]+)$`)
)

// IsAbsoluteURI reports whether a URI has a scheme and no part that clients cannot parse. Some clients parse it as a
// browser does, by the scheme.
func IsAbsoluteURI(uri string) bool {
	m := uriStart.FindStringSubmatch(uri)
	if m == nil {
		return false
	}
	scheme, authority := strings.ToLower(m[1]), m[2]
	web := slices.Contains([]string{"http", "https", "ws", "wss", "ftp"}, scheme)
	if authority == "" {
		return !web
	}
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	if at := strings.LastIndexByte(host, ':'); at > strings.LastIndexByte(host, ']') {
		_, err := strconv.ParseUint("0"+host[at+1:], 10, 16)
		if host = host[:at]; err != nil || scheme == "file" {
			return false
		}
	}
	if inside, ok := strings.CutPrefix(host, "["); ok {
		inside, closed := strings.CutSuffix(inside, "]")
		address, err := netip.ParseAddr(inside)
		return closed && err == nil && address.Is6() && address.Zone() == ""
	}
	if !web && scheme != "file" {
		return host != "" && !strings.ContainsAny(host, "\x00\t\n\r <>[\\]^|:")
	}
	last := host[strings.LastIndexByte(strings.TrimSuffix(host, "."), '.')+1:]
	_, err := netip.ParseAddr(host)
	return domainName.MatchString(host) && (err == nil || !numberPart.MatchString(strings.TrimSuffix(last, "."))) && !strings.Contains(strings.ToLower(host), "xn--")
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
