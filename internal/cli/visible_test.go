package cli

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestVisible(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\n\ttext":                  "plain\n\ttext",
		"\x1b[31mred\x1b[0m":             "<U+001B>[31mred<U+001B>[0m",
		"a\u202eb\u2066c":                "a<U+202E>b<U+2066>c",
		"a\u200bb\u200dc\ufeffd\u2060e":  "a<U+200B>b<U+200D>c<U+FEFF>d<U+2060>e",
		"a\u00a0b\u3000c\u2028d\u3164e":  "a<U+00A0>b<U+3000>c<U+2028>d<U+3164>e",
		"tag\U000e0041, sel\ufe0f\u034f": "tag<U+E0041>, sel<U+FE0F><U+034F>",
		"\r\x7f\u009b":                   "<U+000D><U+007F><U+009B>",
		"bad\xff\xfeutf8 \ufffd":         "bad<FF><FE>utf8 \ufffd",
		"é 日本 क्ष":                       "é 日本 क्ष",
	} {
		if got := escapeInvisible(in); got != want {
			t.Errorf("%q = %q, want %q", in, got, want)
		}
	}
	if got := escapeInvisibleLine("a\nb\tc"); got != "a<U+000A>b<U+0009>c" {
		t.Errorf("%q", got)
	}
}

func TestQuotedWords(t *testing.T) {
	t.Parallel()
	for want, words := range map[string][]string{
		"npx -y @scope/pkg@1.2 /tmp/a_b": {"npx", "-y", "@scope/pkg@1.2", "/tmp/a_b"},
		"sh -c 'touch /tmp/x; $(id)' ''": {"sh", "-c", "touch /tmp/x; $(id)", ""},
		`'it'\''s'`:                      {"it's"},
		"'a<U+202E>b<U+000A>c'":          {"a\u202eb\nc"},
		"'~' '*'":                        {"~", "*"},
	} {
		if got := shellQuoteWords(words...); got != want {
			t.Errorf("%q = %s, want %s", words, got, want)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("\x1b[31mred\u202e\xff")
	f.Fuzz(func(t *testing.T, s string) {
		out := escapeInvisible(s)
		if !utf8.ValidString(out) || strings.ContainsFunc(out, func(r rune) bool {
			return r != '\n' && r != '\t' && (unicode.IsControl(r) || isHiddenRune(r) || isInvisibleOrMisleading(r))
		}) {
			t.Fatalf("%q gives %q", s, out)
		}
	})
}
