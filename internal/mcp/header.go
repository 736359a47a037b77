package mcp

import (
	"encoding/base64"
	"strings"
)

// The HTTP headers of the transport, in Go's canonical form.
const (
	HeaderVersion = "Mcp-Protocol-Version"
	HeaderMethod  = "Mcp-Method"
	HeaderName    = "Mcp-Name"
	HeaderSession = "Mcp-Session-Id"
	HeaderParam   = "Mcp-Param-" // prefix of headers that repeat an argument
)

const encodedStart, encodedEnd = "=?base64?", "?="

// EncodeHeaderValue returns text as the value of a header: unchanged if it is unambiguous printable ASCII,
// otherwise base64-encoded.
func EncodeHeaderValue(text string) string {
	plain := text == strings.TrimSpace(text) && !strings.HasPrefix(text, encodedStart)
	for i := 0; plain && i < len(text); i++ {
		plain = ' ' <= text[i] && text[i] <= '~'
	}
	if plain {
		return text
	}
	return encodedStart + base64.StdEncoding.EncodeToString([]byte(text)) + encodedEnd
}

// DecodeHeaderValue reverses EncodeHeaderValue; ok reports whether value is well-formed.
func DecodeHeaderValue(value string) (text string, ok bool) {
	if encoded, found := strings.CutPrefix(value, encodedStart); found {
		if encoded, found = strings.CutSuffix(encoded, encodedEnd); found {
			raw, err := base64.StdEncoding.Strict().DecodeString(encoded)
			return string(raw), err == nil
		}
	}
	for i := 0; i < len(value); i++ {
		if c := value[i]; c != '\t' && (c < ' ' || c > '~') {
			return "", false
		}
	}
	return value, true
}
