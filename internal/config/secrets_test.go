package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestSecretsOfAServer(t *testing.T) {
	env := map[string]string{"CMD": "from-command", "QUERY": "from-url", "ARG": "from-arg", "TOKEN": "from-header", "KEY": "from-env-key"}
	cfg, err := Parse([]byte(`{"mcpServers":{
		"a": {"command": "/bin/${env:CMD}/x", "args": ["--plain", "--key=${env:ARG}", "${env:ARG}${env:CMD}"], "env": {"K": "${env:KEY}", "DEBUG": "1"}},
		"b": {"url": "https://h.example/mcp?k=${env:QUERY}", "headers": {"X": "Bearer ${env:TOKEN}"}}
	}}`), func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{"from-command", "from-arg", "from-env-key"}, {"from-url", "Bearer from-header"}} {
		got := cfg.Servers[i].SecretValues()
		for _, secret := range want {
			if !slices.ContainsFunc(got, func(s string) bool { return s == secret || strings.HasSuffix(s, secret) }) {
				t.Errorf("%s: %q is not in %q", cfg.Servers[i].Name, secret, got)
			}
		}
		if slices.Contains(got, "1") || slices.Contains(got, "") {
			t.Errorf("%s: %q", cfg.Servers[i].Name, got)
		}
	}
}

// TestSecretOfIssuer: the secret for introspection is masked, also in the text of the file.
func TestSecretOfIssuer(t *testing.T) {
	text := `{"require_mcp_auth": true, "public_url": "https://a.example", "oidc": {"issuers": [{"issuer": "https://login.example", "check": "introspection", "client_id": "me", "client_secret": "k3y"}]}, "users": [{"emails": ["@a.example"]}]}`
	cfg, err := Parse([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	shown := []byte(text)
	for _, p := range slices.Backward(FindSecretSpans(shown, nil)) {
		shown = slices.Replace(shown, p.From, p.To, '*')
	}
	for _, s := range []string{cfg.String(), string(shown)} {
		if strings.Contains(s, "k3y") || !strings.Contains(s, "https://login.example") || !strings.Contains(s, "@a.example") {
			t.Error(s)
		}
	}
	if s := cfg.UserSettings(); s.Issuers[0].CheckPassword != "k3y" || s.PublicURL != "https://a.example" {
		t.Errorf("%+v", s)
	}
}

// TestSecretsOfWebhooks: the URL and the secret of a webhook are masked, also in the text of the file, and take secrets
// of the keyring.
func TestSecretsOfWebhooks(t *testing.T) {
	text := `{"notify": {"webhooks": [{"url": "https://hooks.example/services/t0ken-of-the-url", "secret": "k3y-of-the-signature"}, {"url": "${keyring:hook}", "secret": "${keyring:key}"}]}}`
	cfg, err := Parse([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	shown := []byte(text)
	for _, p := range slices.Backward(FindSecretSpans(shown, nil)) {
		shown = slices.Replace(shown, p.From, p.To, '*')
	}
	for _, s := range []string{cfg.String(), string(shown)} {
		if strings.Contains(s, "t0ken") || strings.Contains(s, "k3y") || !strings.Contains(s, "${keyring:hook}") {
			t.Errorf("got %s", s)
		}
	}
	if !strings.Contains(cfg.String(), `"url":"https://hooks.example/***"`) {
		t.Errorf("got %s", cfg)
	}
	w := cfg.Webhooks[1]
	if names := w.SecretNames(); !slices.Equal(names, []string{"hook", "key"}) {
		t.Errorf("names %q", names)
	}
	values := map[string]string{"hook": "https://hooks.example/x", "key": "k"}
	if got, err := w.ResolveSecrets(func(name string) (string, error) { return values[name], nil }); err != nil || got.URL != values["hook"] || got.Secret != "k" || w.URL == got.URL {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := w.ResolveSecrets(func(name string) (string, error) { return "s3cret " + name, nil }); err == nil || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("an invalid URL: %v", err)
	}
	if _, err := w.ResolveSecrets(func(string) (string, error) { return "", errors.New("no keyring") }); err == nil || err.Error() != "no keyring" {
		t.Errorf("a missing secret: %v", err)
	}
}
