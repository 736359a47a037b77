package lane

import (
	"strings"

	"mcpproxy/internal/policy"
)

// readMethod judges a method of HTTP.
func readMethod(method string) Verdict {
	switch method = strings.ToUpper(strings.TrimSpace(method)); method {
	case "GET", "HEAD", "OPTIONS":
		return reading
	case "DELETE":
		return Verdict{Operation: policy.Destructive, Word: method}
	case "":
		return unread("no method")
	}
	return write(method)
}
