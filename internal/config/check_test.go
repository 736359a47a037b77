package config

import (
	"strings"
	"testing"

	"mcpproxy/internal/problem"
)

// TestInvalidServers checks that each invalid text is rejected with a specific error that repeats no value, and that an
// unusual but valid text is accepted.
func TestInvalidServers(t *testing.T) {
	env := func(name, value string) ServerEdit {
		return ServerEdit{Launch: Launch{Command: "x", Env: map[string]string{name: value}}}
	}
	header := func(name, value string) ServerEdit {
		return ServerEdit{Launch: Launch{URL: "https://example.com", Headers: map[string]string{name: value}}}
	}
	for name, c := range map[string]struct {
		server ServerEdit
		want   string // the parameter in the error; "" if the server is valid
	}{
		"no name":                  {env("", "s3cret"), "env"},
		"an assignment":            {env("A=s3cret", "s3cret"), "env"},
		"two lines":                {env("A\nB=s3cret", "s3cret"), "env"},
		"a line break":             {env("A\n", "s3cret"), "env"},
		"an escape":                {env("A\x1b[2J", "s3cret"), "env"},
		"a C1 control":             {env("A\u0085", "s3cret"), "env"},
		"a NUL":                    {env("A\x00", "s3cret"), "env"},
		"a NUL in a value":         {env("A", "s3cret\x00"), "env"},
		"a NUL in the command":     {ServerEdit{Launch: Launch{Command: "s3cret\x00"}}, "command"},
		"a NUL in an argument":     {ServerEdit{Launch: Launch{Command: "x", Args: []string{"a", "s3cret\x00"}}}, "args"},
		"a NUL in the directory":   {ServerEdit{Launch: Launch{Command: "x", WorkingDir: "/s3cret\x00"}}, "working_dir"},
		"another header":           {header("A", "s3cret\r\nB: c"), "headers"},
		"a header name of two":     {header("A: s3cret\r\nB", "c"), "headers"},
		"no header name":           {header("", "s3cret"), "headers"},
		"a key in a value":         {env("KEY", "-----BEGIN-----\nx\n-----END-----\n"), ""},
		"an unusual name":          {env("npm_config_//registry:_x", "y"), ""},
		"an argument of two lines": {ServerEdit{Launch: Launch{Command: "sh", Args: []string{"-c", "a\nb"}}}, ""},
		"a reference":              {header("Authorization", "Bearer ${env:TOKEN}"), ""},
	} {
		err := c.server.CheckValues()
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		p := problem.From(err)
		if p == nil || p.Code != problem.InvalidParameter || p.Detail("parameter") != c.want || p.Hint == "" {
			t.Errorf("%s: %+v", name, p)
			continue
		}
		if c.want != "headers" && strings.Contains(p.Message+p.Hint, "s3cret") || strings.ContainsAny(p.Message, "\n\x00\x1b\u0085") {
			t.Errorf("%s: the message %q repeats a value", name, p.Message)
		}
	}
}
