package scan

import (
	"bytes"
	"strings"
)

// chunkKind says what an address or path is; 0 when it is neither.
func chunkKind(c []byte) wordKind {
	for _, scheme := range known().schemes {
		if bytes.HasPrefix(c, []byte(scheme)) && len(c) > len(scheme) {
			return isURL
		}
	}
	if at := bytes.IndexByte(c, '@'); at > 0 && bytes.IndexByte(c[at:], '.') > 1 {
		return isEmail
	}
	if isSecretPath(c) {
		return isSecretFile
	}
	if len(c) > 2 && (c[0] == '/' && isWordByte(c[1]) || c[0] == '~' && c[1] == '/') && bytes.IndexByte(c[1:], '/') > 0 {
		return isPath
	}
	return 0
}

// isSecretPath reports whether a path is that of a file that holds credentials.
func isSecretPath(c []byte) bool {
	for _, f := range known().certain {
		if bytes.Contains(c, []byte(f)) {
			return true
		}
	}
	for _, f := range known().secretFiles {
		if strings.HasSuffix(f, "/") {
			if bytes.Contains(c, []byte(f)) {
				return true
			}
		} else if bytes.HasSuffix(c, []byte(f)) {
			rest := len(c) - len(f)
			if rest == 0 || f[0] == '/' || f[0] == '.' && (c[rest-1] == '/' || f == ".pem" || f == ".p12" || f == ".pfx" || f == ".kdbx") || c[rest-1] == '/' || c[rest-1] == '.' {
				return true
			}
		}
	}
	return false
}
