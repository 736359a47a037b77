package tool

import (
	"errors"
	"fmt"
	"strings"
)

// ID identifies one tool of one server.
type ID struct {
	Server string
	Tool   string
}

// The maximum lengths of names, in bytes. MCP recommends 128 for tools.
const (
	MaxServerName = 64
	maxToolName   = 256
)

// String returns the form that agents use: "server:tool".
func (id ID) String() string { return id.Server + ":" + id.Tool }

// ParseID splits s at the first colon. The server part must be a valid server name, and the tool part must not be
// empty. It does not check or change the tool part otherwise.
func ParseID(s string) (ID, error) {
	server, name, ok := strings.Cut(s, ":")
	if !ok {
		return ID{}, errors.New("there is no colon")
	}
	if err := CheckServerName(server); err != nil {
		return ID{}, err
	}
	if name == "" {
		return ID{}, errors.New("the tool part is empty")
	}
	if len(name) > maxToolName {
		return ID{}, fmt.Errorf("the tool part is longer than %d bytes", maxToolName)
	}
	return ID{server, name}, nil
}

// CheckServerName returns an error unless s is a server name: 1 to 64 letters, digits,
// dots, dashes and underscores, without "__" (the alias separator), and not "." or "..",
// because names become file names.
func CheckServerName(s string) error {
	switch {
	case s == "":
		return errors.New("the server name is empty")
	case len(s) > MaxServerName:
		return fmt.Errorf("the server name is longer than %d characters", MaxServerName)
	case strings.Contains(s, "__"):
		return errors.New("the server name contains \"__\"")
	case s == "." || s == "..":
		return errors.New("the server name is a dot path")
	}
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-', c == '_':
		default:
			return errors.New("the server name may contain only letters, digits, dots, dashes and underscores")
		}
	}
	return nil
}
