package classify

import (
	"strings"

	"mcpproxy/internal/gate/policy"
)

// classifyMethod classifies an HTTP method.
func classifyMethod(method string) verdict {
	switch method = strings.ToUpper(strings.TrimSpace(method)); method {
	case "GET", "HEAD", "OPTIONS":
		return reading
	case "DELETE":
		return verdict{Operation: policy.Destructive, Word: method}
	case "":
		return unread("no method")
	}
	return write(method)
}

// overridesMethod reports whether lower-case arguments may name another method than the classified one. An
// escaped ASCII character may hide something.
func overridesMethod(args string) bool {
	for _, sign := range []string{"method-override", "x-http-method", "_method", `\u002`, `\u003`, `\u004`, `\u005`, `\u006`, `\u007`} {
		if strings.Contains(args, sign) {
			return true
		}
	}
	return false
}
