package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"mcpproxy/internal/catalog/tool"
)

// node is a JSON Schema, or a part of one.
type node map[string]any

// JSONSchema returns the JSON Schema (2020-12) of the file, for editors. It follows the tables of keys. Rules about
// several keys, or about the value of a reference, are checked only when the file is read.
func JSONSchema() []byte {
	top := objectNode(new(Config).keys(), keyDocs("file", new(Config).keys()), "")
	top["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	top["title"] = "MCPProxy configuration"
	server := objectNode(new(Server).keys(), keyDocs("server", new(Server).keys()), "")
	server["allOf"] = []node{
		{"oneOf": []node{oneOfKeys("command"), oneOfKeys("url")}},
		{"not": node{"required": []string{"enabled_tools", "disabled_tools"}}},
	}
	listed := node{"$ref": "#/$defs/server", "required": []string{"name"}}
	properties := top["properties"].(node)
	properties["mcpServers"] = node{
		"description": plain(keyDocs("file", new(Config).keys())["mcpServers"]),
		"anyOf": []node{
			{"type": "object", "propertyNames": node{"pattern": namePattern, "not": node{"pattern": "__"}}, "additionalProperties": node{"$ref": "#/$defs/server"}},
			{"type": "array", "items": listed},
		},
	}
	profile := objectNode(new(Profile).keys(), keyDocs("profile", new(Profile).keys()), "")
	rule := objectNode(new(ArgumentLaneRule).keys(), keyDocs("lane", new(ArgumentLaneRule).keys()), "")
	rule["required"] = []string{"by", "argument"}
	webhook := objectNode(new(Webhook).keys(), keyDocs("webhook", new(Webhook).keys()), "")
	webhook["required"] = []string{"url"}
	issuer := objectNode(new(OIDCIssuer).keys(), keyDocs("issuer", new(OIDCIssuer).keys()), "")
	issuer["required"] = []string{"issuer"}
	user := objectNode(new(UserRule).keys(), keyDocs("rule", new(UserRule).keys()), "")
	top["$defs"] = node{"webhook": webhook, "issuer": issuer, "rule": user, "tool": objectNode(new(ToolSettings).keys(), keyDocs("tool", new(ToolSettings).keys()), ""), "server": server, "profile": profile, "lane": rule, "hints": objectNode(hintKeys(new(tool.Hints)), keyDocs("hints", hintKeys(new(tool.Hints))), "")}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(top); err != nil {
		panic(err) // made of strings and numbers only
	}
	return out.Bytes()
}

const (
	namePattern      = `^[A-Za-z0-9._-]{1,64}$`
	durationPattern  = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$|^0$`
	referenceInValue = `\$\{env:[A-Za-z_][A-Za-z0-9_]*\}`
)

// objectNode returns the schema of an object with these keys. The keys of texts are the names of these keys after the
// prefix.
func objectNode(keys []configKey, texts map[string]string, prefix string) node {
	properties := node{}
	for _, k := range keys {
		group := k.groupName()
		switch {
		case group != "":
			if properties[group] == nil {
				object := objectNode(keysInGroup(keys, group), texts, group+".")
				if k.alone != "" {
					object = node{"anyOf": []node{{"const": k.alone}, object}}
				}
				properties[group] = object
			}
		default:
			for _, name := range append([]string{k.name}, k.aliases...) {
				properties[name] = k.node(name, texts[prefix+k.name])
			}
			if k.inverse != "" {
				properties[k.inverse] = node{"type": "boolean", "description": "The opposite of " + k.name + "."}
			}
		}
	}
	return node{"type": "object", "additionalProperties": false, "properties": properties}
}

// node returns the schema of the key's value.
func (k configKey) node(name, doc string) node {
	n := valueNode(k)
	n["description"] = plain(doc)
	if name != k.name {
		n["description"] = "The same as " + k.name + "."
	}
	if k.defaultValue != nil {
		n["default"] = k.defaultValue
		if d, ok := k.defaultValue.(time.Duration); ok {
			n["default"] = formatDuration(d)
		}
	}
	return n
}

func valueNode(k configKey) node {
	switch k.kind() {
	case boolean, tristate:
		return node{"type": "boolean"}
	case integer:
		return node{"type": "integer", "minimum": k.min, "maximum": k.max}
	case duration:
		text := node{"type": "string", "pattern": durationPattern + "|" + referenceInValue}
		if k.shortest == 0 {
			return node{"anyOf": []node{text, {"const": 0}}}
		}
		return text
	case list:
		return node{"type": "array", "items": node{"type": "string"}}
	case dictionary:
		return node{"type": "object", "additionalProperties": node{"type": "string"}}
	case webhooks:
		return node{"type": "array", "maxItems": maxWebhooks, "items": node{"$ref": "#/$defs/webhook"}}
	case issuers:
		return node{"type": "array", "maxItems": maxIssuers, "items": node{"$ref": "#/$defs/issuer"}}
	case userRules:
		return node{"type": "array", "maxItems": maxUserRules, "items": node{"$ref": "#/$defs/rule"}}
	case profiles:
		return node{"type": "object", "propertyNames": node{"pattern": namePattern, "not": node{"anyOf": []node{{"pattern": "__"}, {"enum": []string{"all", "mcp"}}}}},
			"additionalProperties": node{"$ref": "#/$defs/profile"}}
	case toolLists:
		return node{"type": "object", "additionalProperties": node{"type": "array", "items": node{"type": "string"}}}
	case laneRules:
		return node{"type": "object", "additionalProperties": node{"$ref": "#/$defs/lane"}}
	case selections:
		return node{"type": "object", "additionalProperties": node{"type": "string"}}
	case toolSettings: // or enabled_tools, as other clients write it
		return node{"anyOf": []node{{"type": "object", "additionalProperties": node{"$ref": "#/$defs/tool"}}, {"type": "array", "items": node{"type": "string"}}}}
	case overrides:
		return node{"type": "object", "additionalProperties": node{"$ref": "#/$defs/hints"}}
	}
	if k.oneOf == nil {
		return node{"type": "string"}
	}
	values := append(slices.Clone(k.oneOf), slices.Sorted(maps.Keys(k.spellings))...)
	return node{"type": "string", "anyOf": []node{{"enum": values}, {"pattern": referenceInValue}}}
}

// oneOfKeys returns a schema that requires the server's key under one of its names.
func oneOfKeys(name string) node {
	k := keyNamed(new(Server).keys(), name)
	var any []node
	for _, n := range append([]string{k.name}, k.aliases...) {
		any = append(any, node{"required": []string{n}})
	}
	return node{"anyOf": any}
}

func keyNamed(keys []configKey, name string) configKey {
	at, _ := findKey(keys, name)
	return keys[at]
}

// plain removes Markdown marks from a documentation text.
func plain(doc string) string { return strings.ReplaceAll(doc, "`", "") }
