package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"mcpproxy/internal/store/redact"
)

var seeds = []string{
	`{"a":[1,2.50,true,null,"x"],"password":"hunter2","token":["a","b",{"c":"d"}],"n":9007199254740993}`,
	`{"name":"API_KEY","value":"abc"}`, `["--token","abc"]`, `"\u0067hp_` + mixed36 + `"`, `"{\"password\":\"a\\\"b\"}"`,
	`"` + github + `"`, `"password=` + github + `,token=abc123def"`, `"postgres:\/\/a:b@c/d"`, `"\ud800\udc00\ud800 Bearer abc123def456ghi789"`,
	pem, jwt, "curl -u a:b -H 'X-Api-Key: abc123def'", "[masked token 0123abcd]", "x=[masked token 0123abcd", "Authorization: Bearer Basic token abc123def456ghi",
	`password password="a`, `<token>abc123def</token>`, "a@b://c:d@e:f@g", "token .= \"abc123def456\"", "%3Dghp_" + mixed36, "\x1b[31mghp_" + mixed36,
	"key\\n" + github, base64.StdEncoding.EncodeToString([]byte(github)), "a" + base64.URLEncoding.EncodeToString([]byte("x: "+github+"?>")) + "\n", "-----BEGIN PRIVATE KEY-----\nabc",
}

// FuzzJSON checks that valid JSON keeps its structure, that only strings change, and that masking again changes
// nothing.
func FuzzJSON(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
		f.Add([]byte(quoteJSON(s)))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		before := bytes.Clone(in)
		got := redact.JSON(in)
		if !bytes.Equal(in, before) {
			t.Fatal("the input was modified")
		}
		if again := redact.JSON(got); !bytes.Equal(again, got) && json.Valid(in) {
			t.Fatalf("masking again changed the text\n   in %q\n once %q\ntwice %q", in, got, again)
		}
		if !json.Valid(in) {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%q became %q, which is not valid JSON", in, got)
		}
		if a, b := withoutStrings(in), withoutStrings(got); a != b {
			t.Fatalf("the structure changed from %s to %s\nin %q\ngot %q", a, b, in, got)
		}
	})
}

// withoutStrings returns a JSON text without its strings. Masking must not change this part.
func withoutStrings(raw []byte) string {
	var b strings.Builder
	inString, escaped := false, false
	for _, c := range raw {
		switch {
		case escaped:
			escaped = false
		case inString && c == '\\':
			escaped = true
		case c == '"':
			inString = !inString
			b.WriteByte(c)
		case !inString:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// FuzzText checks that masking again changes nothing.
func FuzzText(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := redact.Text(in)
		if again := redact.Text(got); again != got {
			t.Fatalf("masking again changed the text\n   in %q\n once %q\ntwice %q", in, got, again)
		}
		redact.URL(in)
	})
}
