package redact

import (
	b64 "encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestEachStringIsScannedSeparately checks that base64 in one string of a document does not affect the scan of the next
// string.
func TestEachStringIsScannedSeparately(t *testing.T) {
	text := b64.StdEncoding.EncodeToString([]byte(strings.Repeat("plain words and more of them, ", 20)))
	for before := range 5 {
		for inFront := range 5 {
			for _, end := range []string{"", `\n`} {
				token := "gh" + "p_" + strings.Repeat("a1B2c3", 6)
				hidden := b64.StdEncoding.EncodeToString([]byte("user:" + token + "@host of the one who asks"))
				raw := fmt.Sprintf(`{"a":"%s%s%s","b":"%s%s"}`, strings.Repeat("x", before), text, end, strings.Repeat("y", inFront), hidden)
				masked := JSON([]byte(raw))
				if strings.Contains(string(masked), hidden) {
					t.Errorf("not masked after %d, %d, %q", before, inFront, end)
				}
				short := fmt.Sprintf(`{"a":"%s%s%s","b":"%s%s"}`, strings.Repeat("x", before), text, end, strings.Repeat("y", inFront), text[:32])
				if masked = JSON([]byte(short)); !json.Valid(masked) {
					t.Errorf("%d, %d, %q: not valid JSON", before, inFront, end)
				}
			}
		}
	}
}
