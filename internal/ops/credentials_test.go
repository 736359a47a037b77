package ops_test

import (
	"slices"
	"testing"

	"mcpproxy/internal/config"
	"mcpproxy/internal/ops"
)

// A found credential is replaced with a reference, and everything around it is kept. A replaced credential is not found
// again.
func TestReplaceCredentials(t *testing.T) {
	l := config.Launch{
		Command: "run", Args: []string{"--token=k-1", "--db", "postgres://u:s3cretpw@h/db", "plain"},
		Env: map[string]string{"API_TOKEN": "abc", "MODE": "fast"}, URL: "https://e.example/mcp?api_key=abcdef123456&token=fedcba654321",
	}
	found := ops.FindCredentials("s", l)
	var places []string
	for _, c := range found {
		if at := ops.LaunchTextAt(l, c.Place); at[c.From:c.To] != c.Value {
			t.Errorf("%s: %q is not %q", c.Place, at[c.From:c.To], c.Value)
		}
		places = append(places, c.Place+" "+c.Kind+" "+c.Name)
	}
	out := ops.ReplaceCredentials(l, found, func(c ops.Credential) string { return "${env:" + c.Name + "}" })
	want := config.Launch{
		Command: "run", Args: []string{"--token=${env:S_TOKEN}", "--db", "postgres://u:${env:S_DB}@h/db", "plain"},
		Env: map[string]string{"API_TOKEN": "${env:API_TOKEN}", "MODE": "fast"}, URL: "https://e.example/mcp?api_key=${env:S_URL_TOKEN}&token=${env:S_URL_TOKEN}",
	}
	if len(places) != 5 || out.Args[0] != want.Args[0] || !slices.Equal(out.Args, want.Args) || out.Env["API_TOKEN"] != want.Env["API_TOKEN"] || out.Env["MODE"] != "fast" || out.URL != want.URL {
		t.Errorf("%q\n%+v", places, out)
	}
	if l.Args[0] != "--token=k-1" || l.Env["API_TOKEN"] != "abc" {
		t.Error("the input has changed")
	}
	if again := ops.FindCredentials("s", out); len(again) != 0 {
		t.Errorf("found in references: %+v", again)
	}
}

func TestAt(t *testing.T) {
	l := config.Launch{Args: []string{"a"}}
	for _, place := range []string{"args.1", "args.-1", "args.x", "args", "env.A", "headers.B"} {
		if got := ops.LaunchTextAt(l, place); got != "" {
			t.Errorf("%s: %q", place, got)
		}
	}
}

func TestName(t *testing.T) {
	for text, want := range map[string]string{"my-server_token": "MY_SERVER_TOKEN", "9x": "_9X", "": "_", "é": "_"} {
		if got := ops.ToSecretName(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
