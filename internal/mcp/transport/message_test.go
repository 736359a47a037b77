package transport

import (
	"encoding/json"
	"testing"
)

// TestLoneSurrogates: half a surrogate pair becomes the replacement character, everything else stays.
func TestLoneSurrogates(t *testing.T) {
	for from, want := range map[string]string{
		`{"a":"\ud83d\uDE00 \u00d8 \\ud83d é"}`: ``,
		`{"a":"\ud83d"}`:                        `{"a":"\ufffd"}`,
		`{"a":"\uDE00\uD83D\ud83d\ude00"}`:      `{"a":"\ufffd\ufffd\ud83d\ude00"}`,
		`{"a":"\\\ud83d\n"}`:                    `{"a":"\\\ufffd\n"}`,
		`{"\udfff":1}`:                          `{"\ufffd":1}`,
		`"\ud83`:                                ``,
		`"\ud83d\`:                              `"\ufffd\`,
	} {
		if want == "" {
			want = from
		}
		before := from
		if got := string(replaceLoneSurrogates([]byte(from))); got != want || from != before || json.Valid([]byte(from)) != json.Valid([]byte(got)) {
			t.Errorf("%s: %s, want %s", from, got, want)
		}
	}
}
