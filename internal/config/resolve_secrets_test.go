package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/problem"
	"mcpproxy/internal/upstream/secret"
)

const withSecrets = `{"mcpServers":{
	"a": {"command": "/bin/x", "args": ["--key=${keyring:ARG}", "$${keyring:TEXT}"], "env": {"K": "${keyring:ENV}-${env:PLAIN}", "S": "${keyring:ENV}"}},
	"b": {"url": "https://h.example/mcp?k=${keyring:url.key-1}", "headers": {"X": "Bearer ${keyring:HEAD}"}, "oauth": {"client_id": "c", "client_secret": "${keyring:OAUTH}"}},
	"none": {"command": "/bin/x", "env": {"K": "${env:TRICK}"}}
}}`

func secretServers(t *testing.T) *Config {
	t.Helper()
	// References in the value of a variable are not expanded.
	cfg, err := Parse([]byte(withSecrets), func(name string) (string, bool) {
		return map[string]string{"PLAIN": "plain", "TRICK": "${keyring:ENV}"}[name], true
	})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func known(name string) (string, error) { return "value of " + name, nil }

func TestReveal(t *testing.T) {
	cfg := secretServers(t)
	before := fmt.Sprintf("%q", secretServers(t).Servers[0].Env)
	for i, want := range [][]string{{"ARG", "ENV"}, {"HEAD", "OAUTH", "url.key-1"}, {}} {
		if got := cfg.Servers[i].SecretNames(); !slices.Equal(got, want) {
			t.Errorf("server %d needs %q, want %q", i, got, want)
		}
	}
	a, err := cfg.Servers[0].ResolveSecrets(known)
	if err != nil || !slices.Equal(a.Args, []string{"--key=value of ARG", "${keyring:TEXT}"}) ||
		!reflect.DeepEqual(a.Env, map[string]string{"K": "value of ENV-plain", "S": "value of ENV"}) {
		t.Errorf("%q %q %v", a.Args, a.Env, err)
	}
	if got := a.SecretValues(); !slices.Contains(got, "value of ENV") || !slices.Contains(got, "value of ARG") {
		t.Errorf("secret values: %q", got)
	}
	if got := fmt.Sprintf("%q", cfg.Servers[0].Env); got != before {
		t.Errorf("the configuration was changed: %s", got)
	}
	b, err := cfg.Servers[1].ResolveSecrets(func(name string) (string, error) { return "v-" + name, nil })
	if err != nil || b.URL != "https://h.example/mcp?k=v-url.key-1" || b.Headers["X"] != "Bearer v-HEAD" || b.OAuth.ClientSecret != "v-OAUTH" {
		t.Errorf("%q %q %q %v", b.URL, b.Headers, b.OAuth.ClientSecret, err)
	}
	if none, err := cfg.Servers[2].ResolveSecrets(known); err != nil || none.Env["K"] != "${keyring:ENV}" {
		t.Errorf("a variable's value was read as a reference: %q %v", none.Env, err)
	}
}

// TestRevealedIsNotShown checks that a secret is part neither of a reviewed launch nor of any output.
func TestRevealedIsNotShown(t *testing.T) {
	s := secretServers(t).Servers[0]
	revealed, err := s.ResolveSecrets(known)
	if err != nil {
		t.Fatal(err)
	}
	if s.LaunchFingerprint() != revealed.LaunchFingerprint() {
		t.Error("the value of a secret changes the fingerprint")
	}
	for _, text := range []string{s.String(), revealed.String(), fmt.Sprintf("%v %#v %+v", revealed, revealed, revealed)} {
		if strings.Contains(text, "value of") || !strings.Contains(text, "${keyring:ENV}") {
			t.Errorf("shown: %s", text)
		}
	}
}

func TestRevealRefuses(t *testing.T) {
	s := secretServers(t).Servers[1]
	for name, c := range map[string]struct {
		value func(string) (string, error)
		want  string
	}{
		"missing": {func(name string) (string, error) { return "", errors.New("needs " + name) }, "needs url.key-1; needs HEAD; needs OAUTH"},
		"line break in a header": {func(name string) (string, error) {
			if name == "HEAD" {
				return "planted\r\nX-Other: 1", nil
			}
			return "v", nil
		}, "headers is invalid with the value of its secret: this is not a valid header value"},
	} {
		_, err := s.ResolveSecrets(c.value)
		var own *problem.TrustedTextError
		if !errors.As(err, &own) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "planted") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestPlacesWithoutSecrets(t *testing.T) {
	for _, text := range []string{
		`{"api_key": "${keyring:A}"}`, `{"data_dir": "/x/${keyring:A}"}`, `{"trusted_hosts": ["${keyring:A}"]}`,
		`{"mcpServers": {"s": {"command": "x", "trust": "${keyring:A}"}}}`,
		`{"mcpServers": {"s": {"command": "x", "enabled_tools": ["${keyring:A}"]}}}`,
		`{"mcpServers": {"s": {"command": "x", "call_timeout": "${keyring:A}"}}}`,
		`{"mcpServers": {"s": {"command": "x", "enabled": false, "protocol": "${keyring:A}"}}}`,
	} {
		if _, err := Parse([]byte(text), nil); err == nil || !strings.Contains(err.Error(), "${keyring:NAME} cannot be used in") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, name := range []string{"", "9", "a b", "a/b", "a\n", "ä", "_a.b-c9", strings.Repeat("x", 128), strings.Repeat("x", 129)} {
		if secretName.MatchString(name) != (secret.CheckName(name) == nil) {
			t.Errorf("package secret treats the name %q differently", name)
		}
	}
	for _, name := range []string{"", "9", "a b", "a/b", strings.Repeat("x", 129)} {
		if _, err := Parse([]byte(`{"mcpServers": {"s": {"command": "x", "env": {"A": "${keyring:`+name+`}"}}}}`), nil); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
}
