package wirejson

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAppendString(t *testing.T) {
	for text, want := range map[string]string{
		"":                              `""`,
		"github:create_issue":           `"github:create_issue"`,
		"a \"b\" \\c/ <&>":              `"a \"b\" \\c/ <&>"`,
		"\b\f\n\r\t\x00\x1f\x7f":        `"\b\f\n\r\t\u0000\u001f` + "\x7f" + `"`,
		"é€😀\u2028\ud7ff":               `"é€😀` + "\u2028\ud7ff" + `"`,
		"12345678\xff\xff12345678\xc3":  `"12345678` + "\uFFFD\uFFFD" + `12345678` + "\uFFFD" + `"`,
		"twelve bytes\nand more than 8": `"twelve bytes\nand more than 8"`,
	} {
		if got := string(AppendString([]byte("x"), text)); got != "x"+want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	buf, text := make([]byte, 0, 1000), "a text\nof two lines"
	if n := testing.AllocsPerRun(100, func() { AppendString(AppendString(buf, text), buf[:10]) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""}, {"abc", 3, "abc"}, {"abc", 2, "ab"}, {"abc", 0, ""},
		{"é€😀", 9, "é€😀"}, {"é€😀", 8, "é€"}, {"é€😀", 5, "é€"}, {"é€😀", 4, "é"}, {"é€😀", 1, ""},
		{"\xbf\xbf\xbf\xbf\xbf\xbf", 5, "\xbf\xbf\xbf\xbf\xbf"},
	} {
		if got := ClipText(c.text, c.most); got != c.want {
			t.Errorf("ClipText(%q, %d) = %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

// FuzzString checks that a written string is read as the same string, also by encoding/json, and is not longer than the
// output of encoding/json. A string must also be read as encoding/json reads it.
func FuzzString(f *testing.F) {
	for _, r := range corpus(f) {
		f.Add(string(r.B64))
	}
	f.Add(`"a\"\\\/\b\f\n\r\t\u0000\u001f\u007f\u2028é\ud83d\ude00\ud800\ud800\udc00\udc00\u0041\ud83dx\ud83d\u0041"`)
	f.Add("\x7f\u2028😀\xff\xc3a\xe2\x82")
	f.Fuzz(func(t *testing.T, s string) {
		whole := string([]rune(s)) // replaces invalid UTF-8
		written := AppendString(nil, s)
		theirs, _ := json.Marshal(whole)
		var back string
		if err := json.Unmarshal(written, &back); err != nil || back != whole {
			t.Fatalf("%q is written as %s: %q, %v", s, written, back, err)
		}
		if got, ok := String(written); !ok || got != whole || len(written) > len(theirs) {
			t.Fatalf("%q is written as %s and read as %q", s, written, got)
		}
		Unescape([]byte(s)) // must not panic
		if got, ok := String([]byte(s)); ok && json.Unmarshal([]byte(s), &back) == nil && string([]rune(got)) != back {
			t.Fatalf("%s is read as %q, want %q", s, got, back)
		}
	})
}

// TestExceedsFloat64 checks that only numbers count, not texts.
func TestExceedsFloat64(t *testing.T) {
	for text, want := range map[string]bool{
		``: false, `{}`: false, `[0,-0,1.5,1e308,-1.7976931348623157e308,1e-999,"1e999","\\\"1e999"]`: false, `{"1e999":{"a\\":[null,true,12345678901234567890]}}`: false,
		`1e999`: true, `{"a":[{"b":-1E+400}]}`: true, `[1` + strings.Repeat("0", 400) + `]`: true, `{"a":"\\","b": 1e309 }`: true,
	} {
		if got := ExceedsFloat64([]byte(text)); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

// TestLoneSurrogates checks that half a surrogate pair becomes the replacement character, and that everything else is
// kept.
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
		if got := string(ReplaceLoneSurrogates([]byte(from))); got != want || from != before || json.Valid([]byte(from)) != json.Valid([]byte(got)) {
			t.Errorf("%s: %s, want %s", from, got, want)
		}
	}
}
