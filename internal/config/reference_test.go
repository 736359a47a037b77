package config

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/catalog/tool"
)

//go:embed reference.md
var referenceText string

// Reference returns the reference of the file in Markdown.
func Reference() []byte {
	var aliases []string
	for _, k := range new(Server).keys() {
		if len(k.aliases) > 0 {
			aliases = append(aliases, fmt.Sprintf("%s for `%s`", formatCodeList(k.aliases), k.name))
		}
		if k.inverse != "" {
			aliases = append(aliases, fmt.Sprintf("`%s` for the opposite of `%s`", k.inverse, k.name))
		}
		if len(k.spellings) > 0 {
			for _, meaning := range slices.Compact(slices.Sorted(maps.Values(k.spellings))) {
				words := slices.Sorted(maps.Keys(k.spellings))
				words = slices.DeleteFunc(words, func(w string) bool { return k.spellings[w] != meaning })
				aliases = append(aliases, fmt.Sprintf("the values %s of `%s` for `%s`", formatCodeList(words), k.name, meaning))
			}
		}
	}
	return []byte(strings.NewReplacer(
		"{{top}}", rows("file", new(Config).keys(), true),
		"{{server}}", rows("server", new(Server).keys(), true),
		"{{profile}}", rows("profile", new(Profile).keys(), false),
		"{{tool}}", rows("tool", new(ToolSettings).keys(), false),
		"{{lane}}", rows("lane", new(ArgumentLaneRule).keys(), false),
		"{{webhook}}", rows("webhook", new(Webhook).keys(), false),
		"{{issuer}}", rows("issuer", new(OIDCIssuer).keys(), false),
		"{{rule}}", rows("rule", new(UserRule).keys(), false),
		"{{hints}}", rows("hints", hintKeys(new(tool.Hints)), false),
		"{{aliases}}", strings.Join(aliases, "; "),
		"{{mistakes}}", sampleMistakes(),
	).Replace(referenceText))
}

// rows returns the lines of the table of keys.
func rows(object string, keys []configKey, defaults bool) string {
	var lines []string
	texts := keyDocs(object, keys)
	for _, k := range keys {
		cells := []string{"`" + k.name + "`", k.typeDescription()}
		if defaults {
			cells = append(cells, k.defaultText())
		}
		doc := texts[k.name]
		if k.restart {
			doc += " *restart*"
		}
		if k.grants.when != "" {
			doc += " *confirm if " + k.grants.when + "*"
		}
		lines = append(lines, "| "+strings.Join(append(cells, doc), " | ")+" |")
	}
	return strings.Join(lines, "\n")
}

// defaultText returns the default as it would be written in the file.
func (k configKey) defaultText() string {
	switch d := k.defaultValue.(type) {
	case nil:
		if k.kind() == boolean {
			return "`false`"
		}
		if k.kind() == integer {
			return "`0`"
		}
		return ""
	case time.Duration:
		return "`\"" + formatDuration(d) + "\"`"
	default:
		b, err := json.Marshal(d)
		if err != nil {
			return ""
		}
		return "`" + string(b) + "`"
	}
}

// sampleMistakes returns the error of a file with some mistakes.
func sampleMistakes() string {
	_, err := Parse([]byte(`{
  "lisen": "127.0.0.1:8080",
  "call_timeout": 30,
  "mcpServers": {
    "github": {"command": "gh-mcp", "url": "https://example.com/mcp"},
  },
}`), nil)
	if err == nil {
		return ""
	}
	return err.Error()
}
