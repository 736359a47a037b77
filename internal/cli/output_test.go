package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"mcpproxy/internal/problem"
)

func TestPrintable(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain\n\ttext":                   "plain\n\ttext",
		"\x1b[31mred\x1b[0m":              "red",
		"\x1b[38;2;1;2;3mx":               "x",
		"\x1b]0;title\ax":                 "x",
		"\x1b]8;;http://e\x1b\\y\x1b]8;;": "y8;;",
		"\x1bP+q\x1b\\z":                  "z",
		"\x1b(Bz\x1b7":                    "z",
		"\u009b31mx\u009d0;t\u009cy":      "xy",
		"a\x1b":                           "a",
		"\x1b[":                           "",
		"\x1b]never ends":                 "never ends",
		"a\rb\r\nc":                       "a\nb\nc",
		"a\bb\x7fc\x00":                   "abc",
		"a\u202eb\u2066c\u200fd":          "abcd",
		"a\u200bb\ufeffc\u00add":          "abcd",
		"\U000e0041tag":                   "tag",
		"👩\u200d👧 é 日本 क्\u200dष": "👩\u200d👧 é 日本 क्\u200dष",
		"a\u2028b":    "a\nb",
		"bad\xffutf8": "bad\ufffdutf8",
	} {
		if got := toPrintable(in); got != want {
			t.Errorf("%q = %q, want %q", in, got, want)
		}
	}
	if got := toOneLine(" a\n b\tc "); got != "a b c" {
		t.Errorf("%q", got)
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("\x1b[31mred\x1b]8;;x\x1b\\\u009b1m\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		out := toPrintable(s)
		if !utf8.ValidString(out) {
			t.Fatalf("%q is not UTF-8", out)
		}
		for _, r := range out {
			if r != '\n' && r != '\t' && (unicode.IsControl(r) || isHiddenRune(r)) {
				t.Fatalf("%q still contains %U", s, r)
			}
		}
		if toPrintable(out) != out {
			t.Fatalf("%q changes if it is made printable again", out)
		}
	})
}

func TestColours(t *testing.T) {
	t.Parallel()
	env := map[string]string{}
	r := &invocation{terminal: true, Deps: Deps{Getenv: func(n string) string { return env[n] }}}
	if got := r.newPrinter(nil).colorize(colorGood, "ok"); !strings.Contains(got, "\x1b[") || !strings.Contains(got, "ok") {
		t.Errorf("on a terminal: %q", got)
	}
	env["NO_COLOR"] = "1"
	if got := r.newPrinter(nil).colorize(colorGood, "ok"); got != "ok" {
		t.Errorf("with NO_COLOR: %q", got)
	}
	delete(env, "NO_COLOR")
	r.noColor = true
	if got := r.newPrinter(nil).colorize(colorGood, "ok"); got != "ok" {
		t.Errorf("with --no-color: %q", got)
	}
}

func TestConfigCommands(t *testing.T) {
	t.Parallel()
	w := newTestEnv(t)
	if got := w.runCommand("config", "path"); got.stdout != filepath.Join(w.env["HOME"], ".mcpproxy", "mcp_config.json")+"\n" {
		t.Errorf("%+v", got)
	}
	if got := w.runCommand("config", "validate"); got.code != 0 || !strings.Contains(got.stdout, "the defaults apply") {
		t.Errorf("%+v", got)
	}
	file := filepath.Join(t.TempDir(), "c.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"tools_limit": 7, "mcpServers": {"x": {"command": "x", "env": {"TOKEN": "hunter2"}}}, } // fine`)
	w.env["MCPPROXY_CONFIG"] = file
	if got := w.runCommand("config", "validate"); got.code != 0 || !strings.Contains(got.stdout, "is valid") {
		t.Errorf("%+v", got)
	}
	got := w.runCommand("config", "show")
	if got.code != 0 || !strings.Contains(got.stdout, `"tools_limit": 7`) || strings.Contains(got.stdout, "hunter2") {
		t.Errorf("%+v", got)
	}
	write("{\n \"tool_limit\": 7,\n \"tools_limit\": \"x\",\n \"listen\": 5}")
	got = w.runCommand("config", "validate", file)
	if got.code != problem.ExitFailed || strings.Count(got.stderr, "c.json:") < 3 || !strings.Contains(got.stderr, "2:") {
		t.Errorf("%+v", got)
	}
	if got = w.runCommand("config", "validate", "/no/such/file"); got.code != problem.ExitNotFound {
		t.Errorf("%+v", got)
	}
}

// If the file was deleted after the daemon read it, the command shows the daemon's result.
func TestValidateDeletedFile(t *testing.T) {
	t.Parallel()
	w := newEnvWithDaemon(t, &fakeOperations{})
	w.env["HOME"] = "/home/me" // the fake reports a file in this directory
	got := w.runCommand("config", "validate")
	if got.code != problem.ExitFailed || got.stdout != "" || !strings.Contains(got.stderr, "Error: mcp_config.json:3:5: unknown key") || !strings.Contains(got.stderr, "Restore the file") {
		t.Errorf("%+v", got)
	}
	w.env["HOME"] = "/home/nobody"
	if got = w.runCommand("config", "validate"); got.code != 0 || !strings.Contains(got.stdout, "the defaults apply") {
		t.Errorf("%+v", got)
	}
}
