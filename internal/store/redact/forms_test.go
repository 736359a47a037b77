package redact_test

import (
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"mcpproxy/internal/store/redact"
)

// TestForms tests values in sentences, command flags, comparisons and concatenations, encoded values, and texts that
// only look like these.
func TestForms(t *testing.T) {
	hexed := hex.EncodeToString([]byte("A=1\nGITHUB_TOKEN=" + github + "\n"))
	escaped := ""
	for i := 0; i < len(hexed); i += 2 {
		escaped += "%" + hexed[i:i+2]
	}
	airtable := "pa" + "t" + mixed36[:14] + "." + strings.Repeat("0a1b2c3d", 8)
	mailchimp := hex40[:32] + "-us" + "12"
	for _, c := range [][2]string{
		// In sentences.
		{"my password is hunter22", "my password is {password}"},
		{"the password for the database is Tr0ub4dor#3.", "the password for the database is {password}."},
		{`username 'ann' and password 'hunter22'`, `username 'ann' and password '{password}'`},
		{"machine h login ann password hunter2x9", "machine h login ann password {password}"},
		{"The API key is q7R2m9X4w8Z1k5T3", "The API key is {api-key}"},
		{"the password is required", ""}, {"the password is base64", ""}, {"password must have 8 characters", ""}, {"the password is the token2 of it", ""},
		// After short flags.
		{"docker login -u ann -p hunter22 ghcr.io", "docker login -u ann -p {password} ghcr.io"},
		{"docker login \\\n  -p 'hunter22'", "docker login \\\n  -p '{password}'"},
		{"mysql -u root -phunter22 shop", "mysql -u root -p{password} shop"},
		{"redis-cli -a hunter22 ping", "redis-cli -a {password} ping"},
		{"docker login ghcr.io\ndocker run -p 8080:80 x", ""}, {"mysql -p shop", ""}, {"docker login -p $PASSWORD", ""}, {"mkdir -p some/dir", ""},
		// In comparisons, concatenations, or up to the end of the line.
		{`if ("hunter22" == password) {`, `if ("{password}" == password) {`},
		{"api_key = ab]cd(ef}gh1#", "api_key = {api-key}"},
		{`password = "hunter22" + "more4you"`, `password = "{password}" + "{password}"`},
		{`"` + github[:20] + `" + "` + github[20:] + `"`, `"{github-token}" + "{github-token}"`},
		{"token: " + github[:24] + "\n" + github[24:], "token: {token}\n" + github[24:]},
		{`["` + github[:9] + `", "` + github[9:] + `"]`, `["{github-token}", "{github-token}"]`},
		{"secret := decode(value)", ""}, {"password = get(a)[0])", ""}, {`if ("name" == key) {`, ""}, {github[:4] + "\nThe quick brown fox2", ""},
		// Encoded.
		{"x=" + hexed, "x={github-token}"}, {strings.ToUpper(hexed), "{github-token}"},
		{strings.ReplaceAll(escaped, "%", `\x`), "{github-token}"},
		{strings.TrimSpace(strings.ReplaceAll(escaped, "%", " ")), "{github-token}"},
		{"q=" + url.QueryEscape(`{"password":"hunter22hunter22"}`), "q=%7B%22password%22%3A%22{password}%22%7D"},
		{hex.EncodeToString([]byte("The quick brown fox jumps over the lazy dog")), ""}, {"q=The%20quick%20brown%20fox%3A%20jumps", ""},
		// Token formats of services.
		{"see " + airtable, "see {airtable-token}"}, {mailchimp, "{mailchimp-key}"}, {hex40[:32] + "-user", ""}, {"A3-" + "ABCDEF-ABC123-AB1CD-AB1CD-AB1CD-AB1CD", "{1password-key}"},
		{"Authorization: Api-Token q7R2m9X4w8Z1k5T3", "Authorization: Api-Token {authorization}"},
	} {
		want := c[1]
		if want == "" {
			want = c[0]
		}
		if got := maskKinds(redact.Text(c[0])); got != want {
			t.Errorf("%q\n got %q\nwant %q", c[0], got, want)
		}
		checkMaskedTwiceAndAsJSON(t, c[0])
	}
	if got := maskKinds(string(redact.JSON(json.RawMessage(`{"args":["docker","login","-u","ann","-p","hunter"],"ports":["-p","80"]}`)))); got != `{"args":["docker","login","-u","ann","-p","{password}"],"ports":["-p","80"]}` {
		t.Error(got)
	}
	if got := redact.Args([]string{"login", "-p", "hunter"}); maskKinds(got[2]) != "{password}" {
		t.Error(got)
	}
	if got := maskKinds(string(redact.JSON(json.RawMessage(`{"part1":"` + github[:22] + `","part2":"` + github[22:] + `","n":1}`)))); got != `{"part1":"{github-token}","part2":"{github-token}","n":1}` {
		t.Error(got)
	}
}
