package redact

import (
	encoding "encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// missedByQuickTest returns the first credential that the full scan finds in a text that the quick test rejects.
func missedByQuickTest(raw []byte) string {
	if mayHoldCredential(raw) {
		return ""
	}
	var f credentialFinder
	if json.Valid(raw) {
		f.findInJSON(raw, 0)
	} else {
		f.findInText(raw)
	}
	if len(f.spans) == 0 {
		return ""
	}
	return string(raw[f.spans[0].from:f.spans[0].to])
}

// FuzzScan checks that the quick test never rejects a text in which the full scan finds a credential.
func FuzzScan(f *testing.F) {
	for _, s := range []string{
		`{"password":"x"}`, `"a=b, token: c"`, `{"name":"api_key","value":"x"}`, `"\tpassword\t=\tabc123def"`, `"x .= 'y'"`, "token[3] = 'abc123def'",
		`"<token>\n abc123def"`, `"var x string = 'abc123def'"`, `"://a:b@c"`, `"--token abc123def"`, `"Bearer abc123def456ghi789"`, `"curl -u a:b"`,
		`"key\u003dabc123def"`, `"\u001b[31mghp_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5"`, `["--token","a"]`, `"-----BEGIN X PRIVATE KEY-----\nabc"`,
		`"110201543:AAHdqTcvCH1vGWJxfSe1ofSAs0K5PALDsaw"`, `"set('token', 'abc123def')"`, `"\"token\", \"abc123def\""`, "jwttoken%3D%keyAK" + "IAIOSFODNN7EXAMPLE",
		`token\\value = abc123def456ghi789PASS&`, `token \value\"\"` + "\n = ?=7c9e6679-7425-40de-944b-e07fc1f90ae7",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if found := missedByQuickTest(raw); found != "" {
			t.Fatalf("the quick test missed %q in %q", found, raw)
		}
	})
}

// pieces contains parts of credentials, and of texts that look like them.
var pieces = []string{
	"password", "token", "api_key", "key", "Cookie", "Authorization", "value", "name", "string", "secret", "max_tokens", "nextPageToken", "x", "PASS", "jwt",
	"=", ":", ": ", " = ", ":=", "=>", " .= ", ">", "<", ",", ", ", "?=", "==", "://", "@", "/", "?", "&", "#",
	`"`, `'`, "`", `\`, `\"`, "[", "]", "[]", "{", "}", "(", ")", "$", "${", "%", "%3D", "--", "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----", "-u ", "curl ",
	" ", "\n", "\t", "\r\n", `\n`, `\t`, "\x1b[31m", "\x00", "é", "🙂", "\xff", "�", ".", ";", "|",
	"hunter2", "abc123def456", "abc123def456ghi789", "letmein", "Bearer ", "Basic ", "token ", "the quick brown fox", "0", "2026-01-15T10:30:00Z", "your-key", "********",
	"gh" + "p_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5", "AK" + "IAIOSFODNN7EXAMPLE", "s" + "k-aB3dE5gH7jK9mN1pQ3sT5", "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc",
	"110201543:AAHd" + "qTcvCH1vGWJxfSe1ofSAs0K5PALDsaw", "[masked token 0123abcd]", "[masked ", encoding.StdEncoding.EncodeToString([]byte("x gh" + "p_aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5 y")),
	encoding.StdEncoding.EncodeToString([]byte("gh" + "p_aB3dE5gH7jK9mN1pQ3sT5vW7"))[:36], "+/", "==", "7c9e6679-7425-40de-944b-e07fc1f90ae7",
}

// TestPieces combines pieces of text, as plain text, in a JSON string, as a member and as JSON in a JSON string. It
// checks that the quick test accepts every text in which the full scan finds a credential, that masking again changes
// nothing, and that JSON stays valid.
func TestPieces(t *testing.T) {
	n := 30_000
	if testing.Short() {
		n = 3_000
	}
	random := rand.New(rand.NewPCG(1, 2))
	if s := os.Getenv("REDACT_SEED"); s != "" {
		seed, _ := strconv.ParseUint(s, 10, 64)
		random, n = rand.New(rand.NewPCG(seed, 0)), 1_000_000
	}
	for range n {
		var text strings.Builder
		for range 1 + random.IntN(9) {
			text.WriteString(pieces[random.IntN(len(pieces))])
		}
		checkText(t, text.String())
		if t.Failed() {
			return
		}
	}
}

func checkText(t *testing.T, text string) {
	t.Helper()
	once := Text(text)
	if twice := Text(once); twice != once {
		t.Errorf("masking again changed the text\n   in %q\n once %q\ntwice %q", text, once, twice)
	}
	if found := missedByQuickTest([]byte(text)); found != "" {
		t.Errorf("the quick test missed %q in %q", found, text)
	}
	inString, _ := json.Marshal(text)
	member, _ := json.Marshal(map[string]string{"text": text, "token": text, "number": "1"})
	nested, _ := json.Marshal(string(member))
	key, _ := json.Marshal(map[string]string{text: "abc123def"})
	for _, raw := range [][]byte{inString, member, nested, key} {
		if found := missedByQuickTest(raw); found != "" {
			t.Errorf("the quick test missed %q in %s", found, raw)
		}
		got := JSON(raw)
		if !json.Valid(got) {
			t.Errorf("%s became %s, which is not valid JSON", raw, got)
		}
		if again := JSON(got); string(again) != string(got) {
			t.Errorf("masking again changed the text\n   in %s\n once %s\ntwice %s", raw, got, again)
		}
	}
}
