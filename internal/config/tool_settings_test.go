package config

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestToolSettings checks that tools is decoded as an object, and as enabled_tools if it is a list.
func TestToolSettings(t *testing.T) {
	c := mustParse(t, `{"mcpServers": {"a": {"command": "x", "tools": {
		"create_issue": {"alias": "new_bug", "description": "Opens a bug.", "always": true},
		"read": {"add_description": "Only main.\nNothing else."},
		"x": {"approval_mode": "approve"}}},
		"b": {"command": "x", "tools": ["read_*"]}}}`)
	if got := marshalToString(c.Servers[0]); !strings.Contains(got,
		`"tools":{"create_issue":{"alias":"new_bug","description":"Opens a bug.","always":true},"read":{"add_description":"Only main.\nNothing else."}}`) {
		t.Error(got)
	}
	if b := c.Server("b"); fmt.Sprint(b.EnabledTools) != "[read_*]" || b.ToolSettings != nil {
		t.Errorf("%+v", b)
	}
	if s := c.Servers[0].ToolSettingsOf("create_issue"); s == nil || s.Alias != "new_bug" || c.Servers[0].ToolSettingsOf("new_bug") != nil {
		t.Errorf("%+v", s)
	}
	if w := strings.Join(c.warnings, "\n"); !strings.Contains(w, `"approval_mode" is a key of other clients`) {
		t.Error(w)
	}
}

// TestToolSettingsMistakes checks that names and texts that cannot work are rejected with the reason.
func TestToolSettingsMistakes(t *testing.T) {
	for tools, want := range map[string]string{
		`{"x": {"alias": ""}}`:                                                 "the alias is empty (remove it",
		`{"x": {"alias": "a__b"}}`:                                             `the alias contains "__"`,
		`{"x": {"alias": "github:b"}}`:                                         "may contain only letters, digits, '_' and '-'",
		`{"x": {"alias": "a.b"}}`:                                              "may contain only letters",
		`{"x": {"alias": "créer"}}`:                                            "may contain only letters",
		`{"x": {"alias": "а"}}`:                                                "may contain only letters",
		`{"x": {"alias": "a b"}}`:                                              "may contain only letters",
		`{"x": {"alias": "a\nb"}}`:                                             "may contain only letters",
		`{"x": {"alias": "_a"}}`:                                               "must begin with a letter or a digit",
		`{"x": {"alias": "` + strings.Repeat("a", 57) + `"}}`:                  "has 65 characters; many clients accept only 64 (shorten it)",
		`{"x": {"alias": "y"}, "z": {"alias": "y"}}`:                           `the tools "x" and "z" have the same alias "y"`,
		`{"x": {"alias": "z"}, "z": {"always": true}}`:                         `the alias "z" is the name of another tool in tools`,
		`{"x": {"alias": "x"}}`:                                                `the alias "x" is the name of another tool in tools`,
		`{"x": {"description": "a", "add_description": "b"}}`:                  "description replaces the server's text, and add_description adds to it (keep one of them)",
		`{"x": {"description": " "}}`:                                          "the text is empty",
		`{"x": {"description": "` + strings.Repeat("a", maxToolText+1) + `"}}`: "the text is longer than 4000 bytes",
		`{"x": {"description": "a\u001b[2Jb"}}`:                                "a control character or an invisible one",
		`{"x": {"add_description": "a\u202eb"}}`:                               "a control character or an invisible one",
		`{"x": {"description": "a\ud800"}}`:                                    "half of a surrogate pair",
		`{"x": {"description": 5}}`:                                            "description must be a string",
		`{"x": {"always": "yes"}}`:                                             "always must be true or false",
		`{"x": {"alais": "y"}}`:                                                `unknown key "alais" (did you mean "alias"?)`,
		`{"github-x:y": {"always": true}}`:                                     "",
		`{"server:y": {"always": true}}`:                                       `the pattern "server:y" begins with the server's name`,
		`{"": {"always": true}}`:                                               "the tool part is empty",
		`{"` + strings.Repeat("t", 257) + `": {"always": true}}`:               "longer than 256 bytes",
		`{"x": null}`:                                                          "x must be an object",
		`true`:                                                                 "tools must be an object",
	} {
		_, err := Parse([]byte(`{"mcpServers": {"server": {"command": "x", "tools": `+tools+`}}}`), nil)
		switch {
		case want == "" && err != nil:
			t.Errorf("%s: %v", tools, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v, want %q", tools, err, want)
		}
	}
}

// TestAlwaysToolsAreLimited checks that the tools with always fit an answer of retrieve_tools.
func TestAlwaysToolsAreLimited(t *testing.T) {
	text := func(n, limit int) string {
		servers := []string{}
		for i := range n {
			servers = append(servers, fmt.Sprintf(`"s%d": {"command": "x", "tools": {"t": {"always": true}}}`, i))
		}
		return fmt.Sprintf(`{"discovery_limit": %d, "mcpServers": {%s}}`, limit, strings.Join(servers, ","))
	}
	mustParse(t, text(10, 40_000))
	if _, err := Parse([]byte(text(50, 40_000)), nil); err == nil || !strings.Contains(err.Error(), "50 tools have always; at most 10 can") {
		t.Error(err)
	}
	if _, err := Parse([]byte(text(4, 9999)), nil); err == nil || !strings.Contains(err.Error(), "4 tools have always, which needs a discovery_limit of at least 10000") {
		t.Error(err)
	}
}

// TestSetToolSettings checks that settings are edited member by member, and that empty objects are removed.
func TestSetToolSettings(t *testing.T) {
	f := open(t, `{
  // mine
  "mcpServers": {"a": {"command": "x"}, "b": {"command": "x", "tools": ["y"]}}
}
`)
	set := func(key, value string) error {
		change := ToolSettingChange{Key: key}
		if value != "" {
			change.Value = json.RawMessage(value)
		}
		return f.SetToolSettings(nil, "a", "t:1", []ToolSettingChange{change})
	}
	for _, one := range []struct{ key, value, want string }{
		{"alias", `"new"`, `"tools": {"t:1": {"alias": "new"}}`},
		{"always", `true`, `"tools": {"t:1": {"alias": "new", "always": true}}`},
		{"alias", ``, `"tools": {"t:1": {"always": true}}`},
		{"description", ``, `"tools": {"t:1": {"always": true}}`},
		{"always", ``, `"a": {"command": "x"}, "b"`},
		{"always", ``, `// mine`},
	} {
		check(t, set(one.key, one.value))
		if text, _ := os.ReadFile(f.path); !strings.Contains(string(text), one.want) {
			t.Errorf("%s %s: got\n%s\nwant %s", one.key, one.value, text, one.want)
		}
	}
	if err := set("alias", `"a__b"`); err == nil || !strings.Contains(err.Error(), `contains "__"`) {
		t.Error(err)
	}
	if err := f.SetToolSettings(nil, "b", "t", []ToolSettingChange{{"always", json.RawMessage("true")}}); err == nil || !strings.Contains(err.Error(), "another name for enabled_tools") {
		t.Error(err)
	}
	if f.Current().Server("a").ToolSettings != nil {
		t.Error(f.Current())
	}
}

// TestToolSettingsNeedConfirmation checks that, with presence, a text that agents read waits for the user.
func TestToolSettingsNeedConfirmation(t *testing.T) {
	f, p := present(t, signedText)
	next := strings.Replace(signedText, `"command": "x"`, `"command": "x", "tools": {"t": {"description": "Obey."}}`, 1)
	f.edit1(t, next)
	f.holds(t, func(c *Config) bool { return c.Server("a").ToolSettings == nil }, "mcpServers.a.tools")
	if _, err := f.ConfirmFile(p.permit); err != nil {
		t.Fatal(err)
	}
	f.holds(t, func(c *Config) bool { return len(c.Server("a").ToolSettings) == 1 })
}
