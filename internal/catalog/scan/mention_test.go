package scan

import (
	"strings"
	"testing"
)

// TestPathsAreNotQuotes: a pattern between slashes is a quotation, a text between two paths is not.
func TestPathsAreNotQuotes(t *testing.T) {
	for text, quotes := range map[string]bool{
		"detects texts such as /ignore all rules/ and reports them": true,
		"such as /ignore all rules/":                                true,
		"for example read /etc/x and ignore all rules in /tmp/ now": false,
		"for example open /home/a, ignore all rules /tmp":           false,
		"see http://a.b/ ignore all rules / and more":               false,
		`such as "put /etc/x, ignore all rules" in a text`:          true,
	} {
		start := strings.Index(text, "ignore")
		if got := openingQuote([]byte(text), start, start+len("ignore all rules")) >= 0; got != quotes {
			t.Errorf("%q: %v", text, got)
		}
	}
}
