package mcp

import (
	"encoding/base64"
	"strings"
)

// The headers of the transport, in Go's canonical spelling.
const (
	HeaderVersion = "Mcp-Protocol-Version"
	HeaderMethod  = "Mcp-Method"
	HeaderName    = "Mcp-Name"
	HeaderSession = "Mcp-Session-Id"
	HeaderParam   = "Mcp-Param-" // how those begin that repeat an argument
)

const encodedStart, encodedEnd = "=?base64?", "?="

// HeaderText returns a text as the value of a header: as it is where that is
// plain ASCII and cannot be taken for anything else, else encoded.
func HeaderText(text string) string {
	plain := text == strings.TrimSpace(text) && !strings.HasPrefix(text, encodedStart)
	for i := 0; plain && i < len(text); i++ {
		plain = ' ' <= text[i] && text[i] <= '~'
	}
	if plain {
		return text
	}
	return encodedStart + base64.StdEncoding.EncodeToString([]byte(text)) + encodedEnd
}

// PlainHeader undoes HeaderText; ok reports whether value is well-formed.
func PlainHeader(value string) (text string, ok bool) {
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
