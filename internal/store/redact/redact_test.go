package redact_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"mcpproxy/internal/store/redact"
)

// The secrets in these tests are assembled here, so that no secret scanner reports this file.
const (
	hex40   = "0123456789abcdef0123456789abcdef01234567"
	mixed36 = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5"
)

var (
	github    = "gh" + "p_" + mixed36
	jwt       = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N"
	pem       = "-----BEGIN RSA PRIVATE" + " KEY-----\nMIIEowIBAAKCAQEA7bq\nabcdefgh\n-----END RSA PRIVATE" + " KEY-----"
	mask      = regexp.MustCompile(`\[masked ([a-z0-9-]+) [0-9a-f]{8}\]`)
	quoteJSON = func(s string) string { b, _ := json.Marshal(s); return string(b) }
)

// maskKinds replaces each mask by its kind in braces, for readable tests.
func maskKinds(s string) string { return mask.ReplaceAllString(s, "{$1}") }

func TestTextTokens(t *testing.T) {
	for kind, secret := range map[string]string{
		"github-token":       github,
		"gitlab-token":       "gl" + "pat-" + mixed36[:20],
		"slack-token":        "xo" + "xb-123456789012-123456789012-" + mixed36[:24],
		"slack-webhook":      "hooks.slack.com/ser" + "vices/T00000000/B00000000/" + mixed36[:24],
		"openai-key":         "s" + "k-proj-" + mixed36 + mixed36,
		"anthropic-key":      "s" + "k-ant-api03-" + mixed36 + mixed36,
		"aws-key-id":         "AK" + "IAIOSFODNN7EXAMPLE",
		"google-key":         "AI" + "za" + mixed36[:35],
		"google-secret":      "GOC" + "SPX-" + mixed36[:28],
		"stripe-key":         "sk" + "_live_" + mixed36[:24],
		"npm-token":          "np" + "m_" + mixed36,
		"pypi-token":         "py" + "pi-AgEIcHlwaS5vcmc" + mixed36 + mixed36,
		"huggingface-token":  "h" + "f_" + mixed36[:34],
		"sendgrid-key":       "S" + "G." + mixed36[:22] + "." + mixed36 + mixed36[:7],
		"shopify-token":      "shp" + "at_" + hex40[:32],
		"digitalocean-token": "do" + "p_v1_" + hex40 + hex40[:24],
		"telegram-token":     "110201543:AAHd" + "qTcvCH1vGWJxfSe1ofSAs0K5PALDsaw",
		"discord-token":      "MTk4NjIyNDgzNDcxOTI1MjQ4." + "Cl2FMQ.ZnCjm1XVW7vRze4b7Cq4se7kKWs",
		"jwt":                jwt,
		"mcpproxy-key":       "mcp" + "p_" + hex40 + hex40[:24],
		"private-key":        pem,
	} {
		t.Run(kind, func(t *testing.T) {
			for _, around := range []string{"%s", "use %s now", "(%s)", "\"%s\"", "x=%s", "x\n%s\ny", "https://h/p?x=%s&y=1", "a%%3D%s", "\x1b[31m%s\x1b[0m"} {
				if kind == "private-key" && strings.Contains(around, "%%") {
					continue
				}
				text := fmt.Sprintf(around, secret)
				got := redact.Text(text)
				if want := fmt.Sprintf(around, "{"+kind+"}"); maskKinds(got) != want {
					t.Errorf("%q became %q", text, got)
				}
				checkMaskedTwiceAndAsJSON(t, text)
			}
			inJSON := `{"content":[{"type":"text","text":` + quoteJSON("see\n"+secret+"\tend") + `}]}`
			if got := maskKinds(string(redact.JSON(json.RawMessage(inJSON)))); got != `{"content":[{"type":"text","text":`+quoteJSON("see\n{"+kind+"}\tend")+`}]}` {
				t.Errorf("%s became %s", inJSON, got)
			}
		})
	}
}

// checkMaskedTwiceAndAsJSON checks that masking again changes nothing, and that the same credentials are masked when
// the text is a JSON string.
func checkMaskedTwiceAndAsJSON(t *testing.T, text string) {
	t.Helper()
	once := redact.Text(text)
	if twice := redact.Text(once); twice != once {
		t.Errorf("masking %q gave %q, masking again gave %q", text, once, twice)
	}
	var inJSON string
	if err := json.Unmarshal(redact.JSON(json.RawMessage(quoteJSON(text))), &inJSON); err != nil {
		t.Fatal(err)
	}
	if inJSON != once {
		t.Errorf("as text %q, as JSON %q", once, inJSON)
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		// Names and values in programming languages and files.
		{"DB_PASSWORD=hunter22", "DB_PASSWORD={password}"},
		{"export API_KEY=s3cr3tvalue && run", "export API_KEY={api-key} && run"},
		{`password: "correct-horse-1"`, `password: "{password}"`},
		{`apiKey := "abc123def456"`, `apiKey := "{api-key}"`},
		{`var authToken string = "abc123def456"`, `var authToken string = "{token}"`},
		{`"client_secret" => "abc123def456",`, `"client_secret" => "{secret}",`},
		{`<accessToken>abc123def456</accessToken>`, `<accessToken>{token}</accessToken>`},
		{`<add key="Password" value="abc123def" />`, `<add key="Password" value="{password}" />`},
		{`setProperty("API_TOKEN", "abc123def456")`, `setProperty("API_TOKEN", "{token}")`},
		{`Server=db;User=sa;Password=letmein;Encrypt=true`, `Server=db;User=sa;Password={password};Encrypt=true`},
		{`{"user":"ann","password":"open,sesame"}`, `{"user":"ann","password":"{password}"}`},
		{`{\"password\":\"opensesame\"}`, `{\"password\":\"{password}\"}`},
		{`run --api-key abc123def456 --verbose`, `run --api-key {api-key} --verbose`},
		{`curl -u ann:hunter22 https://h`, `curl -u ann:{password} https://h`},
		// Headers and authorization schemes.
		{"Authorization: Bearer abc123def456ghi789", "Authorization: Bearer {authorization}"},
		{"Authorization: Basic YW5uOmh1bnRlcjIy", "Authorization: Basic {authorization}"},
		{"X-API-Key: abc123def456", "X-API-Key: {api-key}"},
		{"sent Bearer abc123def456ghi789 to it", "sent Bearer {authorization} to it"},
		{"Cookie: sid=abc123; theme=dark", "Cookie: {cookie}"},
		// URLs.
		{"postgres://ann:hunter2@db:5432/x", "postgres://ann:{url-password}@db:5432/x"},
		{"https://x.io/?access_token=abc123def&y=1", "https://x.io/?access_token={token}&y=1"},
		{"https://0a1b2c3d4e5f60718293a4b5c6d7e8f9@sentry.io/1", "https://{url-password}@sentry.io/1"},

		// Texts that only mention a secret.
		{"The password must have 8 characters.", ""},
		{"password: string", ""},
		{"password: your-password-here", ""},
		{"token = getToken(user)", ""},
		{"token = process.env.TOKEN2", ""},
		{"if (password == null) {", ""},
		{`type="password" name="password"`, ""},
		{`"token": "string"`, ""},
		{"API_KEY=${API_KEY}", ""},
		{"api_key: <your key>", ""},
		{"PWD=/home/ann", ""},
		{"key: value", ""},
		{"primary_key = customer_id", ""},
		{"max_tokens: 4096", ""},
		{"nextPageToken: abc123def456ghi789", ""},
		{"use a Bearer token here", ""},
		{"https://example.com/a@b?c=d", ""},
		{"ann@example.com: hello", ""},
		{"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", ""},
		{"id 7c9e6679-7425-40de-944b-e07fc1f90ae7", ""},
		{"task-do-something-very-long-for-ghp_nothing", ""},
		{"const begin = \"-----BEGIN RSA PRIVATE" + " KEY-----\"", ""},
		{"[masked github-token 0123abcd]", ""},
		{"password=[masked password 0123abcd]", ""},
		{"", ""},
	} {
		want := c.want
		if want == "" {
			want = c.text
		}
		if got := maskKinds(redact.Text(c.text)); got != maskKinds(want) {
			t.Errorf("%q\n got %q\nwant %q", c.text, got, want)
		}
		checkMaskedTwiceAndAsJSON(t, c.text)
	}
}

func TestJSON(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"a telling name", `{"user":"ann","password":"x"}`, `{"user":"ann","password":"{password}"}`},
		{"whatever the value", `{"token":"the word"}`, `{"token":"{token}"}`},
		{"spaces are kept", "{ \"api_key\" :\n \"abc\" }", "{ \"api_key\" :\n \"{api-key}\" }"},
		{"an escaped name", `{"p\u0061ssword":"x"}`, `{"p\u0061ssword":"{password}"}`},
		{"an escaped value", `{"secret":"a\"b\\"}`, `{"secret":"{secret}"}`},
		{"a list", `{"tokens":["a"],"passwords":["a","b",["c"]],"x":"d"}`, `{"tokens":["a"],"passwords":["{password}","{password}",["{password}"]],"x":"d"}`},
		{"numbers and the like are not touched", `{"password":123456,"token":null,"secret":true,"x":1e400}`, ""},
		{"an object decides for itself", `{"token":{"type":"string","description":"The token."}}`, ""},
		{"an empty value", `{"password":"","x":1}`, ""},
		{"a reference", `{"token":"${env:GITHUB_TOKEN}"}`, ""},
		{"the scheme stays", `{"Authorization":"Bearer abc"}`, `{"Authorization":"Bearer {authorization}"}`},
		{"a token under a telling name", `{"token":"` + github + `"}`, `{"token":"{github-token}"}`},
		{"a token for a name", `{"` + github + `":1}`, `{"{github-token}":1}`},
		{"name and value", `[{"name":"API_KEY","value":"abc"},{"name":"x","value":"abc"}]`, `[{"name":"API_KEY","value":"{api-key}"},{"name":"x","value":"abc"}]`},
		{"a flag and its value", `{"args":["--token","abc","--name","def"]}`, `{"args":["--token","{token}","--name","def"]}`},
		{"a flag with its value", `{"args":["--token=abc123def"]}`, `{"args":["--token={token}"]}`},
		{"JSON in a string", `{"text":"{\"password\":\"my dog\",\"n\":1}"}`, `{"text":"{\"password\":\"{password}\",\"n\":1}"}`},
		{"JSON in JSON in a string", `"{\"a\":\"{\\\"password\\\":\\\"my dog\\\"}\"}"`, `"{\"a\":\"{\\\"password\\\":\\\"{password}\\\"}\"}"`},
		{"JSON cut off in a string", `"{\"password\":\"mydogs\",\"token\":\"abcd"`, `"{\"password\":\"{password}\",\"token\":\"{token}"`},
		{"an escape before a token", `"a\n` + github + `\nb"`, `"a\n{github-token}\nb"`},
		{"escapes around are kept as they were", `"\u00e9\/\ud83d\ude00 ` + github + ` \u00e9"`, `"\u00e9\/\ud83d\ude00 {github-token} \u00e9"`},
		{"an escaped token", `"\u0067hp_` + mixed36 + `"`, `"{github-token}"`},
		{"an escaped slash", `"postgres:\/\/ann:hunter2@db\/x"`, `"postgres:\/\/ann:{url-password}@db\/x"`},
		{"a lone surrogate", `{"password":"\ud800x","y":"\udc00"}`, `{"password":"{password}","y":"\udc00"}`},
		{"harmless names", `{"next_page_token":"abc","max_tokens":"9","token_type":"bearer","token_count":"3","progressToken":"p1","public_key":"k","key":"title","compass":"n","author":"x"}`, ""},
		{"a weak name needs a random value", `{"stripe_key":"title of the page","key":"q7R2m9X4w8Z1k5T3"}`, `{"stripe_key":"title of the page","key":"{api-key}"}`},
		{"not JSON at all", `{"password": hunter22, "x`, ""},
		{"nothing", ``, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := c.want
			if want == "" {
				want = c.in
			}
			in := []byte(c.in)
			got := redact.JSON(in)
			if maskKinds(string(got)) != want {
				t.Errorf("\n in  %s\n got %s\nwant %s", c.in, got, want)
			}
			if string(in) != c.in {
				t.Error("the input was modified")
			}
			if c.want == "" && len(in) > 0 && &got[0] != &in[0] {
				t.Error("no credential was found, but the result is a copy")
			}
			if json.Valid(in) && !json.Valid(got) {
				t.Errorf("the result is not valid JSON: %s", got)
			}
			if again := redact.JSON(got); !bytes.Equal(again, got) {
				t.Errorf("masking again gave %s", again)
			}
		})
	}
}

// TestTellingNames checks that a value under a strong name is masked, in every spelling of the name.
func TestTellingNames(t *testing.T) {
	for kind, names := range map[string]string{
		"password":      "password PASSWORD Password passwd pwd user_password db-password passphrase dbPassword DB_PWD",
		"secret":        "secret client_secret clientSecret CLIENT_SECRET app.secret",
		"token":         "token access_token accessToken refresh_token id_token authToken x-auth-token csrfToken GITHUB_TOKEN githubtoken jwt",
		"api-key":       "api_key apikey apiKey API-KEY x-api-key X_API_Key OPENAI_API_KEY access_key secretKey signing_key",
		"private-key":   "private_key privateKey ssh-private-key",
		"authorization": "authorization Authorization Proxy-Authorization",
		"cookie":        "cookie Cookie set-cookie",
		"credential":    "credential credentials",
	} {
		for _, name := range strings.Fields(names) {
			in := `{"` + name + `":"ab"}`
			if got := maskKinds(string(redact.JSON([]byte(in)))); got != `{"`+name+`":"{`+kind+`}"}` {
				t.Errorf("%s became %s", in, got)
			}
		}
	}
	harmless := "max_tokens token_count next_page_token nextPageToken pageToken continuation_token token_type tokenizer secretary passport " +
		"password_hint password_required cookie_policy keyboard monkey primary_key public_key author authority key name description"
	for _, name := range strings.Fields(harmless) {
		in := `{"` + name + `":"ab"}`
		if got := string(redact.JSON([]byte(in))); got != in {
			t.Errorf("%s became %s", in, got)
		}
	}
}

// TestSameSecretSameHash checks that a secret has the same mask in every place.
func TestSameSecretSameHash(t *testing.T) {
	hashes := map[string]bool{}
	for _, s := range []string{
		redact.Text("see " + github), redact.Text("GITHUB_TOKEN=" + github), redact.Text("Authorization: Bearer " + github),
		string(redact.JSON([]byte(`{"token":"` + github + `"}`))), redact.Args([]string{"--token", github})[1],
	} {
		found := mask.FindString(s)
		if found == "" || strings.Contains(s, mixed36) {
			t.Fatalf("not masked: %s", s)
		}
		hashes[found[len(found)-9:]] = true
	}
	if len(hashes) != 1 {
		t.Errorf("%v", hashes)
	}
	if redact.Text(github) == redact.Text(github[:30]+"XYZ123abc9") {
		t.Error("two different secrets have the same mask")
	}
}

func TestArgs(t *testing.T) {
	in := []string{"-y", "@scope/server", "--token", "abc", "--api-key=def", "--name", "x", "DB_PASSWORD=y", "--password", "--verbose", "--key", "title", "postgres://a:b@c/d", github}
	want := []string{"-y", "@scope/server", "--token", "{token}", "--api-key={api-key}", "--name", "x", "DB_PASSWORD={password}", "--password", "--verbose", "--key", "title", "postgres://a:{url-password}@c/d", "{github-token}"}
	got := redact.Args(in)
	for i := range want {
		if maskKinds(got[i]) != want[i] {
			t.Errorf("%q became %q, want %q", in[i], got[i], want[i])
		}
	}
	if in[3] != "abc" {
		t.Error("the input was modified")
	}
}

func TestURL(t *testing.T) {
	for _, c := range [][2]string{
		{"https://example.com/mcp", ""},
		{"https://example.com:8443/mcp?team=a&verbose", ""},
		{"https://ann:hunter2@example.com/mcp", "https://ann:{url-password}@example.com/mcp"},
		{"https://ann:hun@ter2@example.com/mcp", "https://ann:{url-password}@example.com/mcp"},
		{"https://ann@example.org:hunter2@example.com/mcp", "https://ann@example.org:{url-password}@example.com/mcp"},
		{"https://sometoken@example.com", "https://{url-user}@example.com"},
		{"https://h/mcp?api_key=x&team=a#token=y", "https://h/mcp?api_key={api-key}&team=a#token={token}"},
		{"https://h/s/NWI4ZTQxYjYtM2E5Zi00YzRj/mcp", "https://h/s/{url-path}/mcp"},
		{"https://h/a-rather-long-path-without-a-secret/mcp", ""},
		{"https://h/?q=" + github, "https://h/?q={github-token}"},
		{"https://h/?api_key=${env:KEY}", ""},
		{"not a URL", ""},
		{"", ""},
	} {
		want := c[1]
		if want == "" {
			want = c[0]
		}
		got := redact.URL(c[0])
		if maskKinds(got) != want {
			t.Errorf("%q became %q, want %q", c[0], got, want)
		}
		if again := redact.URL(got); again != got {
			t.Errorf("masking %q gave %q, masking again gave %q", c[0], got, again)
		}
	}
}
