package process

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSource(t *testing.T) {
	home := t.TempDir()
	told := t.TempDir()
	if err := os.WriteFile(filepath.Join(told, ".npmrc"), []byte("registry=https://npm.example/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line, variable, home, want string
	}{
		{"npx -y a", "", home, "https://registry.npmjs.org"},
		{"uvx a", "", home, "https://pypi.org"},
		{"uv run a", "", home, "https://pypi.org"},
		{"npx -y a", "npm_config_registry=http://127.0.0.1:9", home, "http://127.0.0.1:9"},
		{"npx -y a", "NPM_CONFIG_REGISTRY=http://127.0.0.1:9", home, "http://127.0.0.1:9"},
		{"uvx a", "UV_DEFAULT_INDEX=https://pip.example/simple", home, "https://pip.example/simple"},
		{"npx -y a", "", told, ""},
		{"npx -y a", "HTTPS_PROXY=http://proxy.example", home, ""},
		{"npx --registry=https://npm.example -y a", "", home, ""},
		{"npx --registry https://npm.example -y a", "", home, ""},
		{"uvx --index-url https://pip.example a", "", home, ""},
		{"uvx --from git+https://git.example/a a", "", home, ""},
		{"npx --offline a", "", home, ""},
		{"docker run a", "", home, ""},
		{"node a.js", "", home, ""},
	} {
		words := strings.Fields(c.line)
		env := map[string]string{"HOME": c.home}
		if name, value, ok := strings.Cut(c.variable, "="); ok {
			env[name] = value
		}
		if got := DetectRunner(words[0], words[1:]).RegistryURL(words[1:], env); got != c.want {
			t.Errorf("%s with %s: %q, want %q", c.line, c.variable, got, c.want)
		}
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	shut, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	shut.Close()
	for address, want := range map[string]string{
		"http://" + l.Addr().String():     "",
		"http://" + shut.Addr().String():  "127.0.0.1 cannot be reached",
		"https://no-such-host.invalid/x/": "the host name no-such-host.invalid cannot be resolved",
		"no address":                      "",
		"":                                "",
	} {
		if got := unreachableReason(t.Context(), address); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
}
