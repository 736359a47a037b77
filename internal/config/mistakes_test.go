package config

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"mcpproxy/internal/clients/textedit"
	"mcpproxy/internal/problem"
	"mcpproxy/internal/testutil/volume"
)

var update = flag.Bool("update", false, "write the golden and the generated files")

// env is the environment of the tests.
func env(name string) (string, bool) {
	v, ok := map[string]string{
		"HOME": "/home/me", "TOKEN": "t0p-s3cret", "WORD": "s3cret-word", "LINES": "a\nb", "DIR": "/srv/data", "DETAIL": "compact",
	}[name]
	return v, ok
}

func TestMistakes(t *testing.T) {
	files, err := filepath.Glob("testdata/bad/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse(archive.Files[0].Data, env)
			if err == nil {
				t.Fatal("the file was accepted")
			}
			got := err.Error() + "\n"
			if strings.Contains(got, "s3cret") {
				t.Errorf("a secret is repeated:\n%s", got)
			}
			if *update {
				archive.Files[1].Data = []byte(got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(archive.Files[1].Data), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func mistakesOf(t *testing.T, err error) []Mistake {
	t.Helper()
	var p *problem.Problem
	if !errors.As(err, &p) || p.Code != problem.InvalidConfig || p.Hint == "" {
		t.Fatalf("not an INVALID_CONFIG with a hint: %v", err)
	}
	m, ok := p.Detail("problems").([]Mistake)
	if !ok || len(m) == 0 {
		t.Fatalf("no problems in the details: %v", p.Details)
	}
	return m
}

func TestMistakeDetails(t *testing.T) {
	_, err := Parse([]byte("{\n  \"mcpServers\": {\"ü\u00a0\": {}, \"a.b\": {\"command\": \"x\", \"args\": [\"a\", 1]}},\n}"), nil)
	want := []Mistake{
		{2, 18, `mcpServers["ü\u00a0"]`, "the server name may contain only letters, digits, dots, dashes and underscores", "the name is used in tool names and file names"},
		{2, 18, `mcpServers["ü\u00a0"]`, "the server has neither command nor url", "add one of them"},
		{2, 66, `mcpServers["a.b"].args[1]`, "args[1] must be a string, not a number", ""},
	}
	if diff := cmp.Diff(want, mistakesOf(t, err)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNotText(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"UTF-16":       {"\xff\xfe{\x00}\x00", "mcp_config.json:1:1: the file is not valid UTF-8 (save it with the encoding UTF-8)"},
		"a broken one": {"{\n // gr\xfc\xdf\n}", "mcp_config.json:2:7: the file is not valid UTF-8 (save it with the encoding UTF-8)"},
		"too large":    {"{" + strings.Repeat(" ", textedit.MaxSize) + "}", fmt.Sprintf("mcp_config.json:1:1: the file is larger than %d bytes (is this the right file?)", textedit.MaxSize)},
		"no bytes":     {"", "mcp_config.json:1:1: the file is empty (write {} to use the defaults)"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Parse([]byte(c.data), nil); err == nil || err.Error() != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestByteOrderMark(t *testing.T) {
	c, err := Parse([]byte("\uFEFF{\"tools_limit\": 7}"), nil)
	if err != nil || c.ToolsLimit != 7 {
		t.Errorf("got %v, %v", c, err)
	}
}

func TestManyMistakes(t *testing.T) {
	_, err := Parse([]byte("{"+strings.Repeat(`"x":1,`, 3)+strings.Repeat("\"y\":1,\n", 300)+"}"), nil)
	if n := len(mistakesOf(t, err)); n != maxMistakes {
		t.Errorf("%d mistakes are reported, want %d", n, maxMistakes)
	}
	if last := "mcp_config.json: and 203 more"; !strings.HasSuffix(err.Error(), last) {
		t.Errorf("the text does not end with %q", last)
	}
}

// TestHugeFile checks that a huge file that is not a configuration is rejected quickly, however many mistakes it has.
func TestHugeFile(t *testing.T) {
	volume.SkipUnderRace(t)
	many := func(n int) int { return volume.FullOrQuick(n, n/10) }
	for name, text := range map[string]string{
		"unknown keys":  `{"mcpServers":{"a":{` + strings.Repeat(`"commando":1,`, many(60_000)) + "}}}",
		"other keys":    "{" + strings.Repeat(`"a":1,`, many(100_000)) + "}",
		"wrong servers": `{"mcpServers":[` + strings.Repeat(`1,`, many(50_000)) + "]}",
		"references":    `{"mcpServers":{"a":{"command":"` + strings.Repeat("${input:A}", many(50_000)) + `"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			if n := len(mistakesOf(t, second(Parse([]byte(text), nil)))); n > maxMistakes {
				t.Errorf("%d mistakes are reported", n)
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }
