//go:build unix

package upstream

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"mcpproxy/internal/problem"
)

// TestSecretsAreNotShown: errors, states, problems and logs contain no secret.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t-value"
	var said bytes.Buffer
	f := newFixture(t, func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(&said, nil)) })
	specs := []Spec{
		{Name: "command", Transport: Stdio, Command: "/nonexistent/" + secret},
		{Name: "url", Transport: HTTP, URL: "https://127.0.0.1:1/" + secret},
		{Name: "header", Transport: HTTP, URL: "http://127.0.0.1:1/", Headers: map[string]string{"bad " + secret: "x"}},
	}
	for i := range specs {
		specs[i].Secrets = []string{secret}
	}
	f.ApplySpecs(specs)
	var all []string
	for _, spec := range specs {
		_, err := f.call(spec.Name, "x", "{}")
		p := wantCode(t, err, problem.ServerUnavailable)
		text, _ := json.Marshal(p)
		state, _ := f.State(spec.Name)
		lines, _ := f.logTail(spec.Name, 100)
		all = append(append(all, string(text), state.LastError, p.Cause.Error()), lines...)
		if state.LastError == "" || len(lines) == 0 {
			t.Errorf("%s: state %+v, log %q", spec.Name, state, lines)
		}
	}
	f.Set.Close(t.Context())
	all = append(all, said.String())
	text := strings.Join(all, "\n")
	if strings.Contains(text, secret) || strings.Count(text, "[masked]") < 6 {
		t.Error(text)
	}
	if files, _ := filepath.Glob(filepath.Join(f.sharedState.LogDir, "*.log")); len(files) != len(specs) {
		t.Errorf("logs %q", files)
	}
}

func TestSpecEqualLooksAtSecrets(t *testing.T) {
	t.Parallel()
	a, b := Spec{Name: "s", Secrets: []string{"one1"}}, Spec{Name: "s", Secrets: []string{"two2"}}
	if a.LaunchEquals(b) || !a.LaunchEquals(a) {
		t.Error("equal")
	}
}
