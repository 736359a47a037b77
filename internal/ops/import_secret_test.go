package ops_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"mcpproxy/internal/ops"
	"mcpproxy/internal/problem"
)

// TestImportSecrets checks which values count as secrets, their names, and which values are not changed.
func TestImportSecrets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		entry   string
		secrets []string // in the form PLACE=NAME=VALUE
		written []string
	}{
		"a token":                 {`{"command": "x", "env": {"SOME_TOKEN": "abc"}}`, []string{"env.SOME_TOKEN=SOME_TOKEN=abc"}, []string{`"SOME_TOKEN": "${keyring:SOME_TOKEN}"`}},
		"a key":                   {`{"command": "x", "env": {"CONTEXT7_KEY": "ctx7"}}`, []string{"env.CONTEXT7_KEY=CONTEXT7_KEY=ctx7"}, nil},
		"a password":              {`{"command": "x", "env": {"DB_PASSWORD": "/x y"}}`, []string{"env.DB_PASSWORD=DB_PASSWORD=/x y"}, nil},
		"a lower-case name":       {`{"command": "x", "env": {"my_password": "hunter2"}}`, []string{"env.my_password=my_password=hunter2"}, nil},
		"a path to a key":         {`{"command": "x", "env": {"SSH_KEY": "~/.ssh/id"}}`, nil, []string{`"~/.ssh/id"`}},
		"a switch":                {`{"command": "x", "env": {"USE_TOKEN": "true"}}`, nil, []string{`"true"`}},
		"a limit":                 {`{"command": "x", "env": {"MAX_TOKENS": "4096"}}`, nil, []string{`"4096"`}},
		"a public key":            {`{"command": "x", "env": {"PUBLIC_KEY": "abc"}}`, nil, []string{`"abc"`}},
		"no secret":               {`{"command": "x", "env": {"MODE": "fast"}}`, nil, []string{`"fast"`}},
		"a reference":             {`{"command": "x", "env": {"API_TOKEN": "${env:API_TOKEN}"}}`, nil, []string{`"${env:API_TOKEN}"`}},
		"a reference of ours":     {`{"command": "x", "env": {"API_TOKEN": "${keyring:OTHER}"}}`, nil, []string{`"${keyring:OTHER}"`}},
		"a bearer":                {`{"url": "https://e.example/mcp", "headers": {"Authorization": "Bearer abcdefgh12345678"}}`, []string{"headers.Authorization=S_TOKEN=abcdefgh12345678"}, []string{`"Bearer ${keyring:S_TOKEN}"`}},
		"a bearer's reference":    {`{"url": "https://e.example/mcp", "headers": {"Authorization": "Bearer ${env:X}"}}`, nil, []string{`"Bearer ${env:X}"`}},
		"a header":                {`{"url": "https://e.example/mcp", "headers": {"X-API-Key": "k-1"}}`, []string{"headers.X-API-Key=S_X_API_KEY=k-1"}, nil},
		"a flag":                  {`{"command": "x", "args": ["--api-key", "k-1", "--port", "80"]}`, []string{"args.1=S_API_KEY=k-1"}, []string{`"--port"`}},
		"a flag with =":           {`{"command": "x", "args": ["--token=k-1"]}`, []string{"args.0=S_TOKEN=k-1"}, []string{`"--token=${keyring:S_TOKEN}"`}},
		"of docker":               {`{"command": "docker", "args": ["run", "-e", "GH_TOKEN=k-1", "image"]}`, []string{"args.2=S_GH_TOKEN=k-1"}, nil},
		"by its form":             {`{"command": "x", "args": ["` + token + `"]}`, []string{"args.0=S_TOKEN=" + token}, nil},
		"in a URL":                {`{"url": "https://e.example/mcp?api_key=abcdef123456&x=1"}`, []string{"url=S_URL_TOKEN=abcdef123456"}, []string{"api_key=${keyring:S_URL_TOKEN}&x=1"}},
		"in a database's URL":     {`{"command": "x", "env": {"DATABASE_URL": "postgres://u:s3cretpw@h/db"}}`, []string{"env.DATABASE_URL=DATABASE_URL=s3cretpw"}, []string{`"postgres://u:${keyring:DATABASE_URL}@h/db"`}},
		"behind a dollar":         {`{"command": "x", "env": {"DATABASE_URL": "postgres://u:$s3cretpw@h/db"}}`, []string{"env.DATABASE_URL=DATABASE_URL=$s3cretpw"}, []string{`"postgres://u:${keyring:DATABASE_URL}@h/db"`}},
		"a token behind a dollar": {`{"command": "x", "args": ["$` + token + `"]}`, []string{"args.0=S_TOKEN=$" + token}, []string{`["${keyring:S_TOKEN}"]`}},
		"two in a URL":            {`{"url": "https://e.example/mcp?api_key=abcdef123456&token=fedcba654321"}`, []string{"url=S_URL_TOKEN=abcdef123456", "url=S_S_URL_TOKEN=fedcba654321"}, []string{"api_key=${keyring:S_URL_TOKEN}&token=${keyring:S_S_URL_TOKEN}"}},
		"one value twice":         {`{"command": "x", "env": {"A_TOKEN": "same", "B_TOKEN": "same"}}`, []string{"env.A_TOKEN=A_TOKEN=same", "env.B_TOKEN=B_TOKEN=same"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "{}")
			w.write(".cursor/mcp.json", `{"mcpServers": {"s": `+c.entry+`}}`)
			h := w.look("cursor")
			if len(h.Found) != 1 {
				t.Fatalf("%+v", h.Findings)
			}
			shown, _ := json.Marshal(h.Found[0].Launch)
			w.take(h, ops.ImportOptions{Keyring: true})
			written := w.read(w.live.Path())
			var got []string
			for _, s := range h.Found[0].Secrets {
				got = append(got, s.Place+"="+s.Name+"="+w.value(s.Name))
			}
			if !slices.Equal(got, c.secrets) {
				t.Errorf("%q, want %q", got, c.secrets)
			}
			for _, s := range c.secrets {
				if value := s[strings.LastIndex(s, "=")+1:]; strings.Contains(written, `"`+value+`"`) || strings.Contains(string(shown), `"`+value+`"`) {
					t.Errorf("%q is in plain text in %s %s", value, shown, written)
				}
			}
			for _, want := range c.written {
				if !strings.Contains(written, want) {
					t.Errorf("%s is missing in %s", want, written)
				}
			}
		})
	}
}

// TestNamesOfSecrets checks that each value gets its own name and is stored once.
func TestNamesOfSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "{}")
	if _, err := w.store.Set(t.Context(), "TOKEN", "mine"); err != nil {
		t.Fatal(err)
	}
	w.write(".cursor/mcp.json", `{"mcpServers": {
		"a": {"command": "a", "env": {"TOKEN": "mine"}}, "b": {"command": "b", "env": {"TOKEN": "of b"}},
		"c": {"command": "c", "env": {"TOKEN": "of c", "API_KEY": "shared"}}, "d": {"command": "d", "env": {"API_KEY": "shared"}}}}`)
	h := w.look("")
	var names []string
	for _, f := range h.Found {
		for _, s := range f.Secrets {
			names = append(names, f.Name+":"+s.Name)
		}
	}
	if want := []string{"a:TOKEN", "b:B_TOKEN", "c:API_KEY", "c:C_TOKEN", "d:API_KEY"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	// Only d is imported, so the secret that it shares with c is stored for d.
	if out, err := h.ImportServers(t.Context(), ids(h)[3:], ops.ImportOptions{Keyring: true}); err != nil || !out.Results[0].Added || w.value("API_KEY") != "shared" {
		t.Errorf("%+v %v", out, err)
	}
	w.sets = 0
	w.take(w.look(""), ops.ImportOptions{Keyring: true})
	if w.value("TOKEN") != "mine" || w.value("B_TOKEN") != "of b" || w.value("C_TOKEN") != "of c" || w.sets != 2 {
		t.Errorf("%q %q %q, stored %d times", w.value("TOKEN"), w.value("B_TOKEN"), w.value("C_TOKEN"), w.sets)
	}
}

// TestWithoutTheKeyring checks that the values stay in place if the user does not want to move them to the keyring.
func TestWithoutTheKeyring(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "{}")
	w.write(".cursor/mcp.json", `{"mcpServers": {"a": {"command": "a", "env": {"TOKEN": "clear"}}}}`)
	w.take(w.look(""), ops.ImportOptions{})
	if !strings.Contains(w.read(w.live.Path()), `"TOKEN": "clear"`) || w.sets != 0 {
		t.Error(w.read(w.live.Path()))
	}
	if found := w.look("").Found[0]; !found.AlreadyAdded {
		t.Errorf("%+v", found)
	}
}

// TestSecretChangedSincePreview checks that the name of a secret is not used if the stored value has changed since the
// preview.
func TestSecretChangedSincePreview(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "{}")
	w.write(".cursor/mcp.json", `{"mcpServers": {"a": {"command": "a", "env": {"FIRST_TOKEN": "1", "TOKEN": "of a"}}}}`)
	h := w.look("")
	if _, err := w.store.Set(t.Context(), "TOKEN", "mine"); err != nil {
		t.Fatal(err)
	}
	if r := w.take(h, ops.ImportOptions{Keyring: true})[0]; r.Added || r.Problem == nil || r.Problem.Code != problem.Conflict || w.value("TOKEN") != "mine" || w.value("FIRST_TOKEN") != "" {
		t.Errorf("%+v %+v", r, r.Problem)
	}
	w.take(w.look(""), ops.ImportOptions{Keyring: true})
	if w.value("A_TOKEN") != "of a" || w.value("TOKEN") != "mine" {
		t.Errorf("%q %q", w.value("A_TOKEN"), w.value("TOKEN"))
	}
}
