package redact_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"mcpproxy/internal/store/redact"
)

// TestPlanted puts secrets where they occur in real calls and results, and checks that no part of them remains.
func TestPlanted(t *testing.T) {
	places := []struct{ name, text string }{
		{"an env file", "NODE_ENV=production\nDATABASE_URL=postgres://app:%[1]s@db:5432/app\nJWT_SECRET=%[2]s\nSTRIPE_API_KEY=\"%[3]s\"\nPORT=3000\n"},
		{"a compose file", "services:\n  db:\n    environment:\n      POSTGRES_PASSWORD: %[1]s\n      API_TOKEN: '%[2]s'\n      - SECRET_KEY=%[3]s\n"},
		{"a request as logged", "> POST /v1 HTTP/1.1\n> Authorization: Bearer %[1]s\n> X-Api-Key: %[2]s\n> Cookie: session=%[3]s; theme=dark\n>\n"},
		{"commands in a shell's history", "curl -H 'Authorization: token %[1]s' https://api.example.com\nexport GITHUB_TOKEN=%[2]s\nmysql --password=%[3]s -h db\n"},
		{"an error", "dial amqp://guest:%[1]s@mq:5672/: 403; used token=%[2]s, client_secret=%[3]s"},
		{"a program", "client := New(Options{Password: \"%[1]s\", APIKey: \"%[2]s\"})\nconst authToken = `%[3]s`\n"},
		{"JSON in a text", `{"host":"db","password":"%[1]s","nested":{"accessToken":"%[2]s"},"headers":[{"name":"X-Auth-Token","value":"%[3]s"}]}`},
		{"INI", "[default]\naws_secret_access_key = %[1]s\n[smtp]\npassword = %[2]s\n[x]\napi_key=%[3]s\n"},
		{"URLs", "see https://x.io/cb?access_token=%[1]s&state=ok and https://x.io/a?api_key=%[2]s or ftp://ann:%[3]s@files/"},
		{"XML", `<server><password>%[1]s</password><add key="ApiKey" value="%[2]s"/><token>%[3]s</token></server>`},
		{"a connection string", "Server=db;User Id=sa;Password=%[1]s; AccountKey=%[2]s;SharedAccessKey=%[3]s;"},
		{"a table of headers", "| Authorization | x |\nproxy-authorization: Basic %[1]s\nx-access-token: %[2]s\nset-cookie: sid=%[3]s; HttpOnly\n"},
	}
	for _, place := range places {
		t.Run(place.name, func(t *testing.T) {
			secrets := []string{"Zx81Qw" + mixed36[:10], "t0pS3cr3tV4lue" + mixed36[:6], "k9Fj2Lm4Np6Qr8St"}
			text := fmt.Sprintf(place.text, secrets[0], secrets[1], secrets[2])
			result := `{"content":[{"type":"text","text":` + quoteJSON(text) + `}],"structuredContent":{"log":` + quoteJSON(text) + `},"isError":false}`
			got := string(redact.JSON(json.RawMessage(result)))
			for _, secret := range secrets {
				if strings.Contains(got, secret) {
					t.Errorf("%s is not masked\nin %s\ngot %s", secret, text, maskKinds(got))
				}
				if strings.Contains(redact.Text(text), secret) {
					t.Errorf("%s is not masked in the text", secret)
				}
			}
			if !json.Valid([]byte(got)) || !strings.Contains(got, `"isError":false`) {
				t.Errorf("the masked result is not valid: %s", got)
			}
		})
	}
}
