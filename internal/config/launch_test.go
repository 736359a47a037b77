package config

import (
	"slices"
	"testing"
)

func TestLaunchFingerprints(t *testing.T) {
	parse := func(server string) Server {
		t.Helper()
		lookup := func(name string) (string, bool) { return "value of " + name, true }
		in := parseInput{file: "test", data: []byte(`{"mcpServers":{"s":` + server + `}}`), lookup: lookup, dataDir: "/tmp"}
		c, err := in.parseConfig()
		if err != nil {
			t.Fatal(err)
		}
		return c.Servers[0]
	}
	const base = `{"command":"c","args":["--token=abcdef0123456789abcdef","${env:X}"],"env":{"A":"1","B":"${env:Y}"}}`
	want := parse(base).LaunchFingerprint()
	for name, same := range map[string]string{
		"values of the environment": `{"command":"c","args":["--token=abcdef0123456789abcdef","${env:X}"],"env":{"B":"2","A":"3"}}`,
		"no sandbox":                `{"command":"c","args":["--token=abcdef0123456789abcdef","${env:X}"],"env":{"A":"1","B":"2"},"sandbox":"off"}`,
		"everything else":           `{"protocol":"stdio","trust":"auto","enabled":false,"quarantined":true,"command":"c","args":["--token=abcdef0123456789abcdef","${env:X}"],"env":{"A":"1","B":"2"},"disabled_tools":["x"]}`,
	} {
		if parse(same).LaunchFingerprint() != want {
			t.Errorf("%s changed the fingerprint", name)
		}
	}
	exact := parse(base).ExactLaunch()
	if !slices.Equal(exact.Args, []string{"--token=abcdef0123456789abcdef", "${env:X}"}) || !slices.Equal(exact.Env, []string{"A", "B"}) {
		t.Errorf("ExactLaunch returned %+v", exact)
	}
	if shown := parse(base).MaskedLaunch(); shown.Args[0] == exact.Args[0] {
		t.Errorf("MaskedLaunch returned %+v", shown)
	}
	seen := map[string]bool{want.String(): true}
	for name, other := range map[string]string{
		"the command":             `{"command":"d","args":["--token=abcdef0123456789abcdef","${env:X}"],"env":{"A":"1","B":"2"}}`,
		"a masked argument":       `{"command":"c","args":["--token=abcdef0123456789abcdee","${env:X}"],"env":{"A":"1","B":"2"}}`,
		"a reference":             `{"command":"c","args":["--token=abcdef0123456789abcdef","${env:Z}"],"env":{"A":"1","B":"2"}}`,
		"what it stands for":      `{"command":"c","args":["--token=abcdef0123456789abcdef","value of X"],"env":{"A":"1","B":"2"}}`,
		"how arguments are split": `{"command":"c","args":["--token=abcdef0123456789abcdef ${env:X}"],"env":{"A":"1","B":"2"}}`,
		"a variable":              `{"command":"c","args":["--token=abcdef0123456789abcdef","${env:X}"],"env":{"A":"1","C":"2"}}`,
		"the directory":           `{"command":"c","args":["--token=abcdef0123456789abcdef","${env:X}"],"env":{"A":"1","B":"2"},"working_dir":"/tmp"}`,
		"a sandbox":               `{"command":"c","args":["--token=abcdef0123456789abcdef","${env:X}"],"env":{"A":"1","B":"2"},"sandbox":{"mode":"on"}}`,
		"a folder of the sandbox": `{"command":"c","args":["--token=abcdef0123456789abcdef","${env:X}"],"env":{"A":"1","B":"2"},"sandbox":{"mode":"on","read":["~/a"]}}`,
		"a URL":                   `{"url":"https://example.com/mcp?key=abcdef0123456789abcdef"}`,
		"another URL":             `{"url":"https://example.com/mcp?key=abcdef0123456789abcdee"}`,
		"a header":                `{"url":"https://example.com/mcp?key=abcdef0123456789abcdef","headers":{"X-A":"1"}}`,
	} {
		f := parse(other).LaunchFingerprint().String()
		if seen[f] {
			t.Errorf("%s did not change the fingerprint", name)
		}
		seen[f] = true
	}
}
