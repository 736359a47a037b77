package config

import "testing"

// TestPlainValuesAreShown checks that values that are not secrets are shown. Values that look like a credential, or
// have another type than the key, are masked.
func TestPlainValuesAreShown(t *testing.T) {
	for text, want := range map[string]string{
		`{"ask": {"tools": {"github:*": "ask", "x:y": "off"}}}`:                            "",
		`{"mcpServers": {"a": {"command": "x", "ask": {"tools": {"delete_*": "ask"}}}}}`:   "",
		`{"profiles": {"p": {"ask": {"tools": {"github:*": "ask"}}}}}`:                     "",
		`{"ask": {"tools": {"github:*": "ghp_0123456789abcdefghijABCDEFGHIJ012345"}}}`:     "ghp_0123456789abcdefghijABCDEFGHIJ012345",
		`{"ask": {"tools": {"github:*": {"a": "other"}}}}`:                                 "other",
		`{"ask": {"tools": ["other"]}}`:                                                    "other",
		`{"mcpServers": {"a": {"command": "x", "env": {"MODE": "other"}}}}`:                "other",
		`{"ask": {"tools": {"a:*": "ask"}}, "mcpServers": {"b": {"env": {"M": "value"}}}}`: "value",
	} {
		shown := ""
		for _, p := range FindSecretSpans([]byte(text), nil) {
			shown += text[p.From:p.To]
		}
		if shown != want {
			t.Errorf("%s is shown as %q, want %q", text, shown, want)
		}
	}
}
