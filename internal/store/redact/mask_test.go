package redact_test

import (
	"testing"

	"mcpproxy/internal/store/redact"
)

// TestHasMask checks that HasMask recognizes masks and nothing else.
func TestHasMask(t *testing.T) {
	for text, want := range map[string]bool{
		redact.Text("password=hunter2-Zq81xK3"): true,
		`{"a":"[masked password b2d1be3c]"}`:    true,
		`[masked [masked key 0123abcd]`:         true,
		`[masked password b2d1be3]`:             false,
		`[masked by hand]`:                      false,
		"":                                      false,
		"[masked ":                              false,
	} {
		if got := redact.HasMask([]byte(text)); got != want {
			t.Errorf("HasMask(%q) = %v", text, got)
		}
	}
}
