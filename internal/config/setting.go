package config

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"mcpproxy/internal/sectionfile"
)

// Setting is a top-level key with its documentation: a row of the reference.
type Setting struct {
	Key     string
	Type    string // string, boolean, integer, duration or list
	Range   string // allowed values, in words; "" for any
	Doc     string
	Value   json.RawMessage // current value, as shown
	Default json.RawMessage
	Allowed []string // allowed values; nil: any
	Restart bool     // a change needs a restart
	Secret  bool
	Set     bool // set in the file
}

// ListSettings returns all settings in reference order, with the values of c; text is the file, nil if there is none.
func ListSettings(c *Config, text []byte) (out []Setting) {
	tree, mistake := sourceText{bytes.TrimPrefix(text, []byte(byteOrderMark))}.parseTree()
	texts := keyDocs("file", c.keys())
	shown := c.Masked().keys()
	untouched := DefaultConfig().keys()
	for i, k := range c.keys() {
		if k.kind() == ignored || k.kind() == servers || k.kind() == profiles || k.kind() == webhooks || k.kind() == issuers || k.kind() == userRules || k.kind() == dictionary {
			continue
		}
		s := Setting{Key: k.name, Doc: texts[k.name], Value: encodeKeyValue(shown[i]), Default: encodeKeyValue(untouched[i]),
			Allowed: k.oneOf, Restart: k.restart, Secret: k.secret}
		s.Type, s.Range = k.typeAndBounds()
		if mistake == nil {
			name, at := k.name, tree
			if group := k.groupName(); group != "" {
				name = k.name[len(group)+1:]
				if m := findMember(tree, group); m != nil {
					at = m.Value
				}
			}
			s.Set = findMember(at, name) != nil && (at.StartOffset != tree.StartOffset || k.groupName() == "")
		}
		out = append(out, s)
	}
	return out
}

// typeAndBounds returns the type of a key's value for programs, and its limits in words.
func (k configKey) typeAndBounds() (word, bounds string) {
	switch k.kind() {
	case boolean:
		return "boolean", ""
	case integer:
		return "integer", k.typeDescription()
	case duration:
		return "duration", k.typeDescription()
	case list:
		return "list", ""
	}
	return "string", ""
}

//go:embed keys.txt
var keyTexts string

// keyDocs returns the documentation of the keys of an object. Each key has one.
func keyDocs(object string, keys []configKey) map[string]string {
	texts := map[string]string{}
	for _, line := range sectionfile.Parse(keyTexts).SectionByHead(object).Lines {
		name, text, _ := strings.Cut(line, " ")
		texts[name] = text
	}
	for _, k := range keys {
		if texts[k.name] == "" {
			panic("keys.txt has no text for " + k.name)
		}
	}
	if len(keys) != len(texts) {
		panic("keys.txt has a text without a key")
	}
	return texts
}

// typeDescription returns the type of a key's value, in words.
func (k configKey) typeDescription() string {
	switch k.kind() {
	case boolean, tristate:
		return "true, false"
	case integer:
		return fmt.Sprintf("%d to %d", k.min, k.max)
	case duration:
		return fmt.Sprintf("duration, %s to %s", formatDuration(k.shortest), formatDuration(k.longest))
	case list:
		return "list of strings"
	case dictionary:
		return "object of strings"
	case overrides, laneRules, selections, toolSettings, profiles, toolLists:
		return "object"
	case webhooks, issuers, userRules:
		return "list of objects"
	case servers:
		return "object or list"
	}
	if k.oneOf != nil {
		return formatCodeList(k.oneOf)
	}
	return "string"
}

func formatCodeList(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "`" + w + "`"
	}
	return strings.Join(quoted, ", ")
}
