package clients

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"mcpproxy/internal/problem"
)

// TestPaste checks texts that users copy from a README, a shell or a client's file.
func TestPaste(t *testing.T) {
	const github = `github {"command":"npx","args":["-y","@modelcontextprotocol/server-github"],"env":{"GITHUB_TOKEN":"x y"}}`
	for text, want := range map[string]string{
		`npx -y @modelcontextprotocol/server-github`:                                                                                                          `command github {"command":"npx","args":["-y","@modelcontextprotocol/server-github"]}`,
		"$ GITHUB_TOKEN='x y' npx -y \\\n  @modelcontextprotocol/server-github\n":                                                                             "command " + github,
		`env GITHUB_TOKEN="x y" npx -y @modelcontextprotocol/server-github`:                                                                                   "command " + github,
		`claude mcp add github --env GITHUB_TOKEN="x y" -- npx -y @modelcontextprotocol/server-github`:                                                        "command " + github,
		`claude mcp add -s user -e GITHUB_TOKEN="x y" github npx -y @modelcontextprotocol/server-github`:                                                      "command " + github,
		`claude mcp add --transport http linear https://mcp.linear.app/mcp`:                                                                                   `command linear {"url":"https://mcp.linear.app/mcp","protocol":"http"}`,
		`claude mcp add --transport sse s https://x.example/sse --header "Authorization: Bearer t"`:                                                           `command s {"url":"https://x.example/sse","headers":{"Authorization":"Bearer t"},"protocol":"sse"}`,
		`claude mcp add-json w '{"type":"stdio","command":"w","args":["--a"]}'`:                                                                               `command w {"command":"w","args":["--a"],"protocol":"stdio"}`,
		`code --add-mcp "{\"name\":\"play\",\"command\":\"npx\",\"args\":[\"@playwright/mcp@latest\"]}"`:                                                      `command play {"command":"npx","args":["@playwright/mcp@latest"]}`,
		`codex mcp add docs --url https://docs.example/mcp --bearer-token-env-var DOCS`:                                                                       `command docs {"url":"https://docs.example/mcp","headers":{"Authorization":"Bearer ${env:DOCS}"}}`,
		`docker run -i --rm -e GITHUB_TOKEN=$GITHUB_TOKEN ghcr.io/github/github-mcp-server:latest`:                                                            `command github {"command":"docker","args":["run","-i","--rm","-e","GITHUB_TOKEN=${env:GITHUB_TOKEN}","ghcr.io/github/github-mcp-server:latest"]}`,
		`npx mcp-remote https://mcp.example.com/sse`:                                                                                                          `command remote {"command":"npx","args":["mcp-remote","https://mcp.example.com/sse"]}`,
		`/usr/local/bin/my-mcp --port=1`:                                                                                                                      `command my {"command":"/usr/local/bin/my-mcp","args":["--port=1"]}`,
		"https://mcp.linear.app/sse\n":                                                                                                                        `url linear {"url":"https://mcp.linear.app/sse"}`,
		`http://127.0.0.1:3000/mcp`:                                                                                                                           `url server {"url":"http://127.0.0.1:3000/mcp"}`,
		`"github": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"], "env": {"GITHUB_TOKEN": "x y"}},`:                                "json " + github,
		`"mcpServers": {"github": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github",], /* c */ "env": {"GITHUB_TOKEN": "x y"}}} // end`: "json " + github,
		`{"github": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"], "env": {"GITHUB_TOKEN": "x y"}}}`:                               "json " + github,
		`{"command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"], "env": {"GITHUB_TOKEN": "x y"}}`:                                           "json " + github,
		`{“mcpServers”: {“a”: {“url”: “https://a.example/mcp”}}}`:                                                                                             `json a {"url":"https://a.example/mcp"}`,
		`“a”: {“url”: “https://a.example/mcp”}`:                                                                                                               `json a {"url":"https://a.example/mcp"}`,
		"[mcp_servers.a]\ncommand = \"x\"\nargs = [\"b\"]\n":                                                                                                  `toml a {"command":"x","args":["b"]}`,
		"extensions:\n  a:\n    type: stdio\n    cmd: x\n    args: [b]\n":                                                                                     `yaml a {"command":"x","args":["b"],"protocol":"stdio"}`,
		"a:\n  command: x\n": `yaml a {"command":"x"}`,
	} {
		f, format, err := ParsePasted([]byte(text))
		if err != nil {
			t.Errorf("%s: got %v", text, problem.From(err))
			continue
		}
		got := string(format)
		for _, s := range f.Servers {
			raw, err := s.Entry.JSON()
			if err != nil {
				t.Fatal(err)
			}
			got += " " + s.Name + " " + string(raw)
		}
		if d := cmp.Diff(want, got); d != "" || len(f.Notes) > 0 {
			t.Errorf("%s: got %+v\n%s", text, f.Notes, d)
		}
	}
}

// TestPasteMistakes checks that the error for a mistake contains its position in the pasted text and a hint.
func TestPasteMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "line 1, column 1: the text is empty",
		"A=1":                                    "line 1, column 1: the command is missing",
		`npx -y "a`:                              "line 1, column 8: the quote",
		"npx a && rm -rf /":                      "line 1, column 7: one command alone",
		"npx $(cat x)":                           "line 1, column 6: a command substitution",
		"npx \\\n  a | b":                        "line 2, column 5: one command alone",
		"claude mcp add x":                       "line 1, column 12: the command of the server is missing",
		"gemini mcp add --trust yes x npx y":     "line 1, column 16: the option \"--trust\" is not known",
		"claude mcp add x -e":                    "line 1, column 18: \"-e\" has no value",
		"\"a\": {\n  \"command\": x\n}":          "line 2, column 14: invalid value x",
		"\"a\": {\"command\": \"x\"":             "line 2, column 2: the file ends too early",
		`{"mcpServers": {"a": {"command": "x"}}`: "line 1, column 39: the file ends too early",
		"null":                                   "line 1, column 1: the text contains no servers",
		`"x"`:                                    "line 1, column 1: the text contains no servers",
		`{"a": 1}`:                               "line 1, column 1: the text contains no servers",
		"just some words\nin two lines":          "line 1, column 1: ",
		"\xff":                                   "line 1, column 1: the file is not valid UTF-8",
	} {
		_, _, err := ParsePasted([]byte(text))
		if p := problem.From(err); p == nil || !strings.HasPrefix(p.Message, want) || p.Hint == "" {
			t.Errorf("%q: got %v", text, p)
		}
	}
	f, _, err := ParsePasted([]byte("\"a\": {\n  \"command\": \"x\",\n  \"strange\": 1\n}"))
	if err != nil || len(f.Servers) != 1 || len(f.Servers[0].Notes) != 1 || f.Servers[0].Notes[0].Line != 3 {
		t.Errorf("%+v, %v", f, err)
	}
}

// FuzzPaste checks that no text causes a panic, and that every result can be stored in a file.
func FuzzPaste(f *testing.F) {
	for _, seed := range []string{"npx -y a", "A=1 b $C", "claude mcp add x -- y", `"a": {"command": "x"}`, "https://a.example", "“a”: {}", "'", "\\", "a:\n b", "- a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		file, _, err := ParsePasted([]byte(text))
		if (file == nil) != (err != nil) {
			t.Errorf("%v, %v", file, err)
		}
	})
}
