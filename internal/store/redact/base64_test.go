package redact_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"mcpproxy/internal/store/redact"
)

// TestBase64 checks that a token is found in base64: in both alphabets, with and without padding, at any offset in the
// decoded text, and in wrapped lines.
func TestBase64(t *testing.T) {
	encodings := map[string]*base64.Encoding{
		"standard": base64.StdEncoding, "standard without padding": base64.RawStdEncoding,
		"URL": base64.URLEncoding, "URL without padding": base64.RawURLEncoding,
	}
	binary := "\x00\xff\xfe>?>?\x80"
	for name, text := range map[string]string{
		"alone": "%", "after a sign": ":%", "after two": "a:%", "a user": "user:%", "JSON": `{"auth":{"token":"%"}}`, "a file": "NODE_ENV=production\nX=%\nPORT=80\n",
		"among bytes": binary + " % " + binary, "one aside": binary + "\x01 % " + binary, "two aside": binary + "\x01\x02 % " + binary, "after a long text": strings.Repeat("a line >?~ of text\n", 300) + "%",
	} {
		for alphabet, encoding := range encodings {
			for kind, token := range map[string]string{"github": github, "aws": "AK" + "IAIOSFODNN7EXAMPLE", "jwt": jwt} {
				encoded := encoding.EncodeToString([]byte(strings.Replace(text, "%", token, 1)))
				for _, around := range []string{"%", "data:text/plain;base64,% and more", "x=%&y=1", "https://h/p?q=%#a", "(%)", "line\n%\nline", `C:\new\%`} {
					in := strings.Replace(around, "%", encoded, 1)
					for form, got := range map[string]string{"text": redact.Text(in), "JSON": string(redact.JSON(json.RawMessage(quoteJSON(in)))),
						"escaped JSON": string(redact.JSON(json.RawMessage(strings.ReplaceAll(quoteJSON(in), "/", `\/`))))} {
						if base64HoldsToken(got, token) {
							t.Errorf("%s, %s, %s in %q as %s: not masked in %s", name, alphabet, kind, around, form, got)
						}
					}
				}
			}
		}
	}
}

// base64HoldsToken reports whether any base64 in a text contains a token.
func base64HoldsToken(text, token string) bool {
	text = strings.NewReplacer(`\/`, "/", `\n`, "", "\n", "", "-", "+", "_", "/").Replace(text)
	for _, run := range strings.FieldsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", r)
	}) {
		for first := range min(4, len(run)) {
			whole := run[first : first+(len(run)-first)/4*4]
			if got, err := base64.StdEncoding.DecodeString(whole); err == nil && strings.Contains(string(got), token[:15]) {
				return true
			}
		}
	}
	return false
}

func TestBase64InLinesAndTwice(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("text before. ", 20) + github + strings.Repeat(" text after", 20)))
	for _, end := range []string{"\n", "\r\n"} {
		for _, width := range []int{60, 64, 76} {
			lines := "MIME:" + end
			for rest := encoded; rest != ""; {
				n := min(width, len(rest))
				lines, rest = lines+rest[:n]+end, rest[n:]
			}
			for _, got := range []string{redact.Text(lines), string(redact.JSON(json.RawMessage(quoteJSON(lines))))} {
				if !mask.MatchString(got) || base64HoldsToken(strings.ReplaceAll(got, `\r`, ""), github) {
					t.Errorf("%d characters in a line: not masked in %q", width, got)
				}
			}
		}
	}
	twice := base64.StdEncoding.EncodeToString([]byte("x " + base64.StdEncoding.EncodeToString([]byte("a "+github))))
	if got := maskKinds(redact.Text("see " + twice + " there")); got != "see {github-token} there" {
		t.Error(got)
	}
}

// TestBase64ThatIsClean checks that base64 without a credential does not change.
func TestBase64ThatIsClean(t *testing.T) {
	for _, clean := range []string{
		"A README without anything in it, but long enough to be looked at.", `{"page":2,"items":["a","b"],"token":null,"max_tokens":100}`,
		"The password is asked for at the first start.", strings.Repeat("\x00\x01\xfe\xffbinary", 50),
	} {
		in := `{"content":"` + base64.StdEncoding.EncodeToString([]byte(clean)) + `"}`
		if got := string(redact.JSON(json.RawMessage(in))); got != in {
			t.Errorf("%q: %s became %s", clean, in, got)
		}
	}
	for _, in := range []string{"ThisIsALongNameInCamelCaseThatNobodyReads", "com/example/VeryLongPackageName/ClassNameOfAFactory", strings.Repeat("abcdefgh", 20), hex40 + hex40} {
		if got := redact.Text(in); got != in {
			t.Errorf("%s became %s", in, got)
		}
	}
}
