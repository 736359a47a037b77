package classify

import "strings"

// classifyHTTPMethod classifies an HTTP method.
func classifyHTTPMethod(method string) verdict {
	switch method = strings.ToUpper(strings.TrimSpace(method)); method {
	case "GET", "HEAD", "OPTIONS":
		return readVerdict
	case "DELETE":
		return destructiveVerdict(method)
	case "":
		return unparseableVerdict("no method")
	}
	return writeVerdict(method)
}

// mayOverrideMethod reports whether arguments, in lower case, may contain another method than the classified one. An
// escaped ASCII character may hide a method.
func mayOverrideMethod(args string) bool {
	for _, sign := range []string{"method-override", "x-http-method", "_method", `\u002`, `\u003`, `\u004`, `\u005`, `\u006`, `\u007`} {
		if strings.Contains(args, sign) {
			return true
		}
	}
	return false
}
