package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"mcpproxy/internal/catalog/tool"
	"mcpproxy/internal/gate/policy"
	"mcpproxy/internal/mcp/dialpolicy"
)

// Checks of single values. An error states the problem and, after "; ", the remedy. It never repeats the value, which may be a
// resolved secret.

func checkNotEmpty(s string) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("the value is empty")
	}
	return nil
}

func checkTokenName(name string) error {
	if tool.CheckServerName(name) != nil {
		return errors.New("it must be the name of an agent token, not " + quoteClipped(name))
	}
	return nil
}

func checkListen(s string) error {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return errors.New("listen must be address:port; such as 127.0.0.1:8080")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return errors.New("the port must be a number from 0 to 65535; such as 127.0.0.1:8080")
	}
	return nil
}

// isLoopbackAddress reports whether only this machine reaches the address.
func isLoopbackAddress(listen string) bool {
	host, _, err := net.SplitHostPort(listen)
	return err == nil && dialpolicy.IsLoopbackHost(host)
}

func checkAbsoluteDir(s string) error {
	if filepath.IsAbs(s) || s == "~" || strings.HasPrefix(s, "~/") {
		return nil
	}
	return errors.New("the directory must be absolute; begin it with / or ~/")
}

func checkAbsolutePath(s string) error {
	if checkAbsoluteDir(s) != nil {
		return errors.New("the path must be absolute; begin it with / or ~/")
	}
	return nil
}

func checkImage(s string) error {
	if s == "" || s[0] == '-' || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the value is not the name of an image; such as docker.io/library/node:22")
	}
	return nil
}

func checkAPIKey(s string) error {
	for _, r := range s {
		if r <= ' ' || r > '~' {
			return errors.New("api_key may contain only printable ASCII characters, no spaces; remove it to generate one")
		}
	}
	if s == "" {
		return errors.New("api_key is empty; remove it to generate one")
	}
	return nil
}

func checkDatabase(s string) error {
	if s == "sqlite" {
		return nil
	}
	if u, err := url.Parse(s); err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" || u.Host == "" && u.RawQuery == "" {
		return errors.New(`database is "sqlite", which is a file in the data directory, or the address of a PostgreSQL database; such as postgres://mcpproxy:password@db.example.com:5432/mcpproxy, where special characters of the password are written as %XX`)
	}
	return nil
}

func checkHost(s string) error {
	host := s
	if h, _, err := net.SplitHostPort(s); err == nil {
		host = h
	}
	if host == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || strings.ContainsRune("/\\*?#@\x7f", r) }) {
		return errors.New("the value is not a host name; write it as in the Host header, without scheme and path")
	}
	return nil
}

func checkURL(s string) error {
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return errors.New("the value is not a URL; such as https://example.com/mcp")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("the URL must begin with http:// or https://; such as https://example.com/mcp")
	case u.Hostname() == "":
		return errors.New("the URL has no host; such as https://example.com/mcp")
	case u.Fragment != "":
		return errors.New("the URL has a fragment; remove # and the text after it")
	}
	return nil
}

func checkRegistryName(name string) error {
	if tool.CheckServerName(name) != nil {
		return errors.New("it must be a name for a registry: letters, digits, dots, dashes and underscores, not " + quoteClipped(name))
	}
	return nil
}

func checkRegistry(s string) error {
	if err := checkURL(s); err != nil {
		return err
	}
	if u, err := url.Parse(s); err != nil || u.User != nil || u.RawQuery != "" {
		return errors.New("a registry has only an address, without a user or a query; such as https://registry.example.com")
	}
	return nil
}

func checkTelemetryEndpoint(s string) error {
	if s == "" {
		return nil // nothing is sent
	}
	if err := checkURL(s); err != nil {
		return err
	}
	if u, err := url.Parse(s); err != nil || u.User != nil || u.RawQuery != "" {
		return errors.New("the endpoint is only the address of an OTLP receiver, such as http://127.0.0.1:4318. Set its headers in the environment variable OTEL_EXPORTER_OTLP_HEADERS")
	}
	return nil
}

func checkNotifyEvent(s string) error {
	if !slices.Contains(NotifyEvents(), s) {
		return fmt.Errorf("the event must be %s; remove events to send all", joinAlternatives(NotifyEvents()))
	}
	return nil
}

func checkClientMetadataURL(s string) error {
	if err := checkURL(s); err != nil {
		return err
	}
	if u, err := url.Parse(s); err != nil || u.Scheme != "https" || u.Path == "" || u.Path == "/" || u.User != nil {
		return errors.New("the address of a client metadata document must be https and have a path; such as https://example.com/mcpproxy.json")
	}
	return nil
}

func checkOneLine(s string) error {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("the value is empty, or contains line breaks or control characters; copy it from the authorization server")
	}
	return nil
}

func checkOAuthScope(s string) error {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) {
		return errors.New("this is not a valid scope; write each scope as a separate string, without spaces")
	}
	return nil
}

func checkEnvName(s string) error {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r == '=' || unicode.IsControl(r) }) {
		return errors.New("this is not a valid name of an environment variable; a name is not empty and has no = and no control characters")
	}
	return nil
}

// checkNoNUL rejects a value with a NUL, because no process can be started with it. It is for values that do not come
// from the file; strings in the file contain none.
func checkNoNUL(s string) error {
	if strings.ContainsRune(s, 0) {
		return errors.New("the value contains a NUL character, which no process accepts; remove it")
	}
	return nil
}

func checkHeaderName(s string) error {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) }) {
		return errors.New("this is not a valid header name; a name has letters, digits and dashes")
	}
	return nil
}

func checkHeaderValue(s string) error {
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return errors.New("this is not a valid header value; it must not contain line breaks or control characters")
	}
	return nil
}

// checkPattern checks a tool pattern, in which only * and ? are special.
func checkPattern(s string) error {
	if s == "" {
		return errors.New("the pattern is empty; * matches every tool")
	}
	if strings.TrimSpace(s) != s {
		return errors.New("the pattern begins or ends with white space; no tool has such a name")
	}
	for _, r := range s {
		if r < ' ' || r == 0x7f {
			return errors.New("the pattern contains a control character; no tool has such a name")
		}
	}
	return nil
}

// CheckProfileName returns an error if a profile cannot have that name. The rules are those of server names, because
// profiles share their URLs.
func CheckProfileName(name string) error {
	if name == "all" || name == "mcp" {
		return errors.New("the name " + quoteClipped(name) + " is reserved for an address of MCPProxy")
	}
	if err := tool.CheckServerName(name); err != nil {
		return errors.New(strings.Replace(err.Error(), "the server name", "the profile name", 1))
	}
	return nil
}

// CheckServerPattern returns an error if the text is neither a possible server name nor a pattern.
func CheckServerPattern(s string) error {
	if strings.Trim(s, "*?") == "" && s != "" {
		return nil
	}
	if err := tool.CheckServerName(strings.NewReplacer("*", "a", "?", "a").Replace(s)); err != nil {
		return errors.New(quoteClipped(s) + " matches no server; server names have letters, digits, '.', '-' and '_'; * matches any characters and ? one")
	}
	return nil
}

func checkLaneName(s string) error {
	if _, ok := policy.ParseOperation(s); !ok {
		return errors.New("a lane must be read, write or destructive, not " + quoteClipped(s))
	}
	return nil
}

// Limits of the time for which a call waits for a user.
const (
	shortestWait = time.Second
	longestWait  = 10 * time.Minute // shorter than the lifetime of an approval request
)

// checkToolPattern checks a server:tool name or pattern.
func checkToolPattern(s string) error {
	server, name, ok := strings.Cut(s, ":")
	if !ok {
		return errors.New(quoteClipped(s) + " is not a tool: write server:tool, in which * matches any characters")
	}
	if err := CheckServerPattern(server); err != nil {
		return err
	}
	return checkPattern(name)
}

func checkAskMode(mode string) error {
	if !slices.Contains(policy.AskModeNames(), mode) {
		return errors.New("it must be " + joinAlternatives(policy.AskModeNames()) + ", not " + quoteClipped(mode))
	}
	return nil
}

var argumentPath = regexp.MustCompile(`^\$(\.[^.$*\[\]\s]+)+$`)

func checkArgumentPath(path string) error {
	if !argumentPath.MatchString(path) {
		return errors.New("the argument must be a path such as $.sql or $.request.method")
	}
	return nil
}
