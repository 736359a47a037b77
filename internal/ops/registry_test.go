package ops

import (
	"slices"
	"strings"
	"testing"
)

// TestShowValues: fixed values and references are shown, and values that look like secrets are masked.
func TestShowValues(t *testing.T) {
	all := map[string]string{"X-Fixed": "eu", "Authorization": "Bearer ${keyring:TOKEN}", "X-Api-Key": "${env:KEY}", "Api-Token": "${env:KEY}0123456789abcdef"}
	want := []string{"Authorization: Bearer ${keyring:TOKEN}", "X-Api-Key: ${env:KEY}", "X-Fixed: eu"}
	if got := showValues(all, ": "); !strings.HasPrefix(got[0], "Api-Token: [masked ") || !slices.Equal(got[1:], want) {
		t.Errorf("%q", got)
	}
}
